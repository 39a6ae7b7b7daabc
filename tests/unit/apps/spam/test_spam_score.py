"""The filter's score is the library's naive Bayes, tempered; its probabilities are honest, of few mails and many."""

import tarfile
from math import log

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

import tallybayes as tb
from tallybayes.apps.spam.spam_calibration import (
    CalibrationMessages,
    calibrate,
    leave_one_out_log_odds,
    leave_one_out_scores,
)
from tallybayes.apps.spam.spam_score import (
    MAX_EFFECTIVE_WORDS,
    PSEUDO_COUNT,
    TOKEN_KINDS,
    UNCALIBRATED,
    SpamCalibration,
    SpamScore,
    SpamTotals,
    Thresholds,
    decide,
    kind_of,
    score_tokens,
    thresholds_of_costs,
)
from tallybayes.apps.spam.tokens.message_tokens import tokens_of
from tests.shared import DATA, needs
from tests.unit.apps.spam.mails import plain

ARCHIVE = DATA / "spamassassin" / "spamassassin-2003.tar.xz"


def messages_of(lists: list[list[str]], is_spam: np.ndarray) -> tuple[CalibrationMessages, list[str]]:
    """Lists of tokens as a store has them."""
    number: dict[str, int] = {}
    ids = np.array([number.setdefault(token, len(number)) for tokens in lists for token in tokens], np.int64)
    starts = np.cumsum([0, *map(len, lists)])
    own = np.repeat(is_spam, np.diff(starts))
    ham, spam = (np.bincount(ids[own == which], minlength=len(number)) for which in (False, True))
    kinds = np.array([kind_of(word) for word in number], np.int64)
    return CalibrationMessages(starts, ids, is_spam, kinds, ham, spam), list(number)


def totals_of(messages: CalibrationMessages) -> SpamTotals:
    n_spam = int(messages.is_spam.sum())
    words = int(((messages.ham + messages.spam) > 0).sum())
    return SpamTotals(len(messages.is_spam) - n_spam, n_spam, int(messages.ham.sum()), int(messages.spam.sum()), words)


def judged(
    tokens: list[str], messages: CalibrationMessages, vocabulary: list[str], calibration: SpamCalibration
) -> SpamScore:
    place = {word: number for number, word in enumerate(vocabulary)}
    known = [place.get(token) for token in tokens]
    ham = [0 if one is None else int(messages.ham[one]) for one in known]
    spam = [0 if one is None else int(messages.spam[one]) for one in known]
    return score_tokens(tokens, ham, spam, totals_of(messages), calibration)


@pytest.fixture
def drawn():
    """Messages of two classes, of words and kinds that are drawn."""
    rng = np.random.default_rng(0)
    names = [
        f"{kind}:{word}" if kind else f"{word}" for kind in ("", "subject", "link", "from", "x") for word in range(30)
    ]
    is_spam = rng.random(80) < 0.4
    share = np.where(is_spam[:, None], rng.beta(0.5, 4, len(names)), rng.beta(0.5, 4, len(names)))
    lists = [[name for name, here in zip(names, row, strict=True) if here] for row in rng.random(share.shape) < share]
    return lists, is_spam


def test_the_score_is_that_of_the_librarys_classes(drawn):
    lists, is_spam = drawn
    messages, vocabulary = messages_of(lists, is_spam)
    matrix = sp.csr_array(
        (np.ones(len(messages.ids), np.int64), messages.ids, messages.starts), (len(lists), len(vocabulary))
    )
    model = tb.NaiveBayes(tb.Multinomial(), prior=PSEUDO_COUNT).fit(matrix, is_spam)
    theirs = np.asarray(model.predict_log_proba(matrix)) @ [-1.0, 1.0]
    for tokens, expected in zip(lists, theirs, strict=True):
        numbers = np.bincount([kind_of(token) for token in tokens], minlength=len(TOKEN_KINDS))
        untempered = SpamCalibration(0.0, tuple((numbers + MAX_EFFECTIVE_WORDS - 1) / MAX_EFFECTIVE_WORDS))
        ours = judged(tokens, messages, vocabulary, untempered)
        assert ours.log_odds == pytest.approx(expected, abs=1e-12, rel=1e-12)
        prior = log((is_spam.sum() + 1) / ((~is_spam).sum() + 1))
        assert prior + sum(ours.weights) == pytest.approx(ours.log_odds, abs=1e-12)


def test_each_kind_weighs_no_more_than_a_few_words():
    totals = SpamTotals(10, 10, 1000, 1000, 100)
    one, many = (score_tokens(["w"] * n, [1] * n, [9] * n, totals, UNCALIBRATED).log_odds for n in (1, 100_000))
    assert one == pytest.approx(log(9.1 / 1.1))
    assert many == pytest.approx(MAX_EFFECTIVE_WORDS * one, rel=1e-4)
    unknown = score_tokens(["w"] + ["new"] * 9, [1] + [0] * 9, [9] + [0] * 9, totals, UNCALIBRATED)
    assert unknown.log_odds == pytest.approx(
        one * MAX_EFFECTIVE_WORDS / (10 + MAX_EFFECTIVE_WORDS - 1)
    )  # they thin the known word out
    assert unknown.weights[1:] == [0.0] * 9


def test_of_one_class_alone_nothing_is_concluded():
    for totals, share in (
        (SpamTotals(0, 0, 0, 0, 0), 1 / 2),
        (SpamTotals(99, 0, 500, 0, 50), 1 / 101),
        (SpamTotals(0, 3, 0, 9, 5), 4 / 5),
    ):
        found = score_tokens(["win", "now"], [totals.ham, 0], [totals.spam, 0], totals, UNCALIBRATED)
        assert found.probability == pytest.approx(share)
        assert found.weights == [0.0, 0.0]
        assert decide(found, Thresholds()) == "unsure"


def test_verdicts():
    sure = [decide(SpamScore(0.0, p, [], True), Thresholds(0.1, 0.99)) for p in (0.0, 0.1, 0.2, 0.98, 0.99, 1.0)]
    assert sure == ["ham", "ham", "unsure", "unsure", "spam", "spam"]
    assert thresholds_of_costs(200.0, 10.0, 1.0) == pytest.approx(Thresholds())
    ham, spam = thresholds_of_costs(100.0, 1.0, 0.1)
    assert (ham, spam) == pytest.approx((0.1, 0.999))
    for costs in ((100.0, 1.0, 0.1), (5.0, 1.0, 10.0), (1.0, 1.0, 0.2), (1.0, 2.0, 0.5)):
        found = thresholds_of_costs(*costs)
        for p in np.linspace(0, 1, 1001)[1:-1]:
            expected = {"ham": costs[1] * p, "spam": costs[0] * (1 - p), "unsure": costs[2]}
            assert expected[decide(SpamScore(0.0, p, [], True), found)] <= min(expected.values()) + 1e-9


def test_kinds_are_read_off_prefixes():
    assert [
        TOKEN_KINDS[kind_of(token)]
        for token in ("win", "subject:win", "image:a.b", "style:<p>", "upper:WIN", "to:bob", "received:x", "header:y")
    ] == list(TOKEN_KINDS)


def test_scores_without_a_message_are_those_of_counts_without_it(drawn, monkeypatch):
    lists, is_spam = drawn
    messages, vocabulary = messages_of(lists, is_spam)
    calibration = SpamCalibration(0.3, tuple(np.linspace(0.2, 1.4, len(TOKEN_KINDS))))
    found = leave_one_out_log_odds(messages, calibration)
    place = {word: number for number, word in enumerate(vocabulary)}
    totals = totals_of(messages)
    for row, (tokens, own) in enumerate(zip(lists, is_spam, strict=True)):
        ham = [int(messages.ham[place[token]]) - (not own) for token in tokens]
        spam = [int(messages.spam[place[token]]) - own for token in tokens]
        less = SpamTotals(
            totals.ham - (not own),
            totals.spam - own,
            totals.ham_words - len(tokens) * (not own),
            totals.spam_words - len(tokens) * own,
            totals.words,
        )
        assert score_tokens(tokens, ham, spam, less, calibration).log_odds == pytest.approx(found[row], abs=1e-12)
    monkeypatch.setattr("tallybayes.apps.spam.spam_calibration._AT_ONCE", 7)  # in pieces, too
    np.testing.assert_array_equal(leave_one_out_log_odds(messages, calibration), found)


def test_a_message_without_words_has_a_score():
    messages, _ = messages_of([["a"], [], ["b"]], np.array([False, True, True]))
    assert np.isfinite(leave_one_out_scores(messages)).all()
    assert np.isfinite(calibrate(messages).slopes).all()


def test_noise_is_calibrated_to_know_nothing():
    rng = np.random.default_rng(1)
    lists = [[f"w{word}" for word in np.unique(rng.integers(0, 3000, 80))] for _ in range(400)]
    messages, _ = messages_of(lists, rng.random(400) < 0.5)
    calibration = calibrate(messages)
    odds = leave_one_out_log_odds(messages, calibration)
    assert np.abs(odds).max() < 0.5  # naive Bayes alone is sure of every one of them
    assert all(slope >= 0 for slope in calibration.slopes)


def test_one_class_is_left_uncalibrated():
    messages, _ = messages_of([["a"], ["b"]], np.array([False, False]))
    assert calibrate(messages) == UNCALIBRATED


@pytest.fixture(scope="module")
def corpus():
    """Every eighth mail of the SpamAssassin corpus, and which are spam."""
    raws, names = [], []
    with tarfile.open(ARCHIVE, "r|xz") as files:  # in one pass: to go back is to unpack it once more
        for number, member in enumerate(files):
            if number % 8 == 0 and member.isfile():
                raws.append(files.extractfile(member).read())
                names.append(member.name)
    return raws, np.array(["ham-" not in name for name in names])


def log_loss(is_spam: np.ndarray, probability: np.ndarray) -> float:
    of_truth = np.where(is_spam, probability, 1 - probability)
    return float(-np.log(np.clip(of_truth, 1e-6, 1)).mean())


needs_corpus = needs("spamassassin")


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("headers", ["headers in", "headers out"])
def test_on_real_mail_it_is_better_than_counts_and_multinomial_naive_bayes(corpus, headers):
    raws, is_spam = corpus
    if headers == "headers out":
        raws = [raw[raw.find(b"\n\n") + 1 :] for raw in raws]
    order = np.random.default_rng(0).permutation(len(raws))
    train, test = np.array_split(order, 2)
    lists = [tokens_of(raw) for raw in raws]
    messages, vocabulary = messages_of([lists[row] for row in train], is_spam[train])
    calibration = calibrate(messages)
    ours = np.array([judged(lists[row], messages, vocabulary, calibration).probability for row in test])
    counts = CountVectorizer(encoding="latin-1")
    peer = MultinomialNB().fit(counts.fit_transform([raws[row] for row in train]), is_spam[train])
    theirs = peer.predict_proba(counts.transform([raws[row] for row in test]))[:, 1]
    assert log_loss(is_spam[test], ours) < log_loss(is_spam[test], theirs) / 4
    assert ((ours > 0.5) != is_spam[test]).mean() < ((theirs > 0.5) != is_spam[test]).mean()
    # What left-out messages say of the filter is what others find: its probabilities are honest.
    promised = log_loss(is_spam[train], 1 / (1 + np.exp(-leave_one_out_log_odds(messages, calibration))))
    assert promised == pytest.approx(log_loss(is_spam[test], ours), abs=0.05)


@pytest.mark.slow
@needs_corpus
def test_with_ten_mails_of_each_class_few_are_misjudged_and_probabilities_are_not_bold(corpus):
    raws, is_spam = corpus
    lists = [tokens_of(raw) for raw in raws]
    losses, false_positives = [], []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(raws))
        train = np.concatenate([order[is_spam[order]][:10], order[~is_spam[order]][:10]])
        test = np.setdiff1d(order, train)
        messages, vocabulary = messages_of([lists[row] for row in train], is_spam[train])
        calibration = calibrate(messages)
        found = [judged(lists[row], messages, vocabulary, calibration) for row in test]
        losses.append(log_loss(is_spam[test], np.array([one.probability for one in found])))
        verdicts = np.array([decide(one, Thresholds()) for one in found])
        false_positives.append((verdicts[~is_spam[test]] == "spam").mean())
    assert np.mean(losses) < 0.4  # half and half for all: 0.69; nothing known but the classes' shares: 0.62
    assert np.mean(false_positives) < 0.005


def test_from_the_first_message_on_it_learns_as_it_judges():
    rng = np.random.default_rng(0)
    kept: list[list[str]] = []
    labels: list[bool] = []
    right = 0
    for number in range(60):
        spam = bool(rng.random() < 0.5)
        words = rng.choice(["win", "prize", "click", "free"] if spam else ["meeting", "noon", "agenda", "lunch"], 3)
        tokens = tokens_of(plain(body=" ".join([*words, *rng.choice(["the", "a", "you", "is"], 3)])))
        messages, vocabulary = messages_of(kept, np.array(labels, bool))
        calibration = calibrate(messages) if kept else UNCALIBRATED
        probability = judged(tokens, messages, vocabulary, calibration).probability
        assert 0 < probability < 1
        right += number >= 30 and (probability > 0.5) == spam
        kept.append(tokens)
        labels.append(spam)
    assert right == 30
