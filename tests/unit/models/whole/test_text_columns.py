"""Columns of text in models: counted as their words, whatever the model."""

import copy
import gc
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

import tallybayes as tb
from tests.examples import examples

MAILS = [
    "Click to win",
    "win win now",
    "minutes of the meeting",
    "The meeting is now, not then.",
    "",
    "WIN the naïve prize: click, CLICK!",
    "東京 meeting",
    "then and now and then",
]
KINDS = np.array(["spam", "spam", "ham", "ham", "ham", "spam", "ham", "spam"])
NEW = ["win a meeting", "click now", "words nobody has seen", "", "the the the then"]
FAMILIES = {
    "multinomial": tb.Multinomial(),
    "compound": tb.DirichletMultinomial(),
    "bernoulli": tb.Bernoulli(),
    "poisson": tb.Poisson(),
}
SKLEARN = {"token_rule": "sklearn"}


def as_matrix(texts, known=MAILS, *, binary=False, **options):
    vectorizer = CountVectorizer(binary=binary, **options).fit(known)
    return vectorizer.transform(texts)


# ---- The same as counting a matrix ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("options", [{}, {"ngram_range": (1, 2)}, {"ngram_range": (2, 3), "characters": True}], ids=str)
def test_it_is_the_matrix_of_its_words(name, options):
    family, binary = FAMILIES[name], name == "bernoulli"
    how = {"analyzer": "char"} if options.get("characters") else {}
    known = {"ngram_range": options.get("ngram_range", (1, 1)), "binary": binary, **how}
    text = tb.NaiveBayes(tb.Text(family, **options, **SKLEARN)).fit(MAILS, KINDS)
    matrix = tb.NaiveBayes(family).fit(as_matrix(MAILS, **known), KINDS)
    expected = matrix.predict_proba(as_matrix(NEW, **known))
    np.testing.assert_allclose(text.predict_proba(NEW), expected, atol=1e-12)
    np.testing.assert_allclose(text.score_samples(NEW), matrix.score_samples(as_matrix(NEW, **known)), atol=1e-10)
    if name != "compound":
        assert text.log_evidence() == pytest.approx(matrix.log_evidence(), abs=1e-9)


@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_it_is_scikit_learns_multinomial(alpha):
    text = tb.NaiveBayes(tb.Text(token_rule="sklearn"), prior=alpha, class_prior="frequency").fit(MAILS, KINDS)
    peer = MultinomialNB(alpha=alpha).fit(as_matrix(MAILS), KINDS)
    np.testing.assert_allclose(text.predict_proba(NEW), peer.predict_proba(as_matrix(NEW)), atol=1e-12)


def test_it_is_scikit_learns_bernoulli():
    family = tb.Text(tb.Bernoulli(), token_rule="sklearn")
    text = tb.NaiveBayes(family, prior=1, class_prior="frequency").fit(MAILS, KINDS)
    peer = BernoulliNB().fit(as_matrix(MAILS), KINDS)
    np.testing.assert_allclose(text.predict_proba(NEW), peer.predict_proba(as_matrix(NEW)), atol=1e-12)


def test_distinct_words_count_once():
    text = tb.NaiveBayes(tb.Text(binary=True, **SKLEARN)).fit(MAILS, KINDS)
    matrix = tb.NaiveBayes(tb.Multinomial()).fit(as_matrix(MAILS, binary=True), KINDS)
    np.testing.assert_allclose(text.predict_proba(NEW), matrix.predict_proba(as_matrix(NEW, binary=True)), atol=1e-12)


def test_hashes_are_words_where_none_collide():
    hashed = tb.NaiveBayes(tb.Text(hash_bits=20), prior=1).fit(MAILS, KINDS)
    assert hashed.predict(MAILS).tolist() == KINDS.tolist()
    assert hashed.tally_["text"].n_columns == 2**20
    assert "text" not in hashed.tally_.domains
    words = tb.NaiveBayes(tb.Text()).fit(MAILS, KINDS).tally_["text"]
    found = hashed.tally_["text"].total
    assert sorted(map(tuple, found.T[found.any(axis=0)])) == sorted(map(tuple, words.total.T))


# ---- Counts add and subtract -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("options", [{}, {"hash_bits": 6}, {"binary": True}, {"ngram_range": (1, 2)}], ids=str)
def test_any_split_is_the_whole(name, options):
    family = tb.Text(FAMILIES[name], **options)
    whole = tb.NaiveBayes(family).fit(MAILS, KINDS)
    parts = tb.NaiveBayes(family).fit(MAILS[3:], KINDS[3:]).partial_fit(MAILS[:3], KINDS[:3])
    merged = tb.NaiveBayes(family).fit(MAILS[:5], KINDS[:5]) + tb.NaiveBayes(family).fit(MAILS[5:], KINDS[5:])
    for other in (parts, merged):
        assert other.tally_.isclose(whole.tally_)
        np.testing.assert_allclose(other.predict_proba(NEW), whole.predict_proba(NEW), atol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_forgotten_words_leave_the_vocabulary(name):
    family = tb.Text(FAMILIES[name])
    model = tb.NaiveBayes(family).fit(MAILS, KINDS).forget(MAILS[5:7], KINDS[5:7])
    never = tb.NaiveBayes(family).fit(MAILS[:5] + MAILS[7:], np.delete(KINDS, [5, 6]))
    assert model.tally_.isclose(never.tally_)
    assert "prize" not in model.tally_.domains["text"].levels
    np.testing.assert_allclose(model.predict_proba(NEW), never.predict_proba(NEW), atol=1e-9)


def test_what_was_never_counted_is_refused_by_its_word():
    model = tb.NaiveBayes(tb.Text()).fit(MAILS, KINDS)
    before = model.tally_
    with pytest.raises(tb.StatisticsError, match="word 'lottery' of 'text'"):
        model.forget(["lottery"], ["spam"])
    assert model.tally_ is before


@pytest.mark.parametrize("name", FAMILIES)
def test_weights_are_repetitions(name):
    family = tb.Text(FAMILIES[name])
    weighted = tb.NaiveBayes(family).fit(MAILS, KINDS, sample_weight=[2, 0, 1, 1, 3, 1, 1, 1])
    again = [0, 0, 2, 3, 4, 4, 4, 5, 6, 7]
    assert weighted.tally_.isclose(tb.NaiveBayes(family).fit([MAILS[k] for k in again], KINDS[again]).tally_)
    halves = tb.NaiveBayes(family).fit(MAILS, KINDS, sample_weight=np.full(8, 0.5))
    assert halves.tally_.isclose(tb.NaiveBayes(family).fit(MAILS, KINDS).tally_.scale(0.5))


# ---- Which words are read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"min_count": 2}, lambda words, total: total >= 2),
        ({"stop_words": ["the", "then", "nothing"]}, lambda words, total: ~np.isin(words, ["the", "then"])),
        ({"max_features": 3}, lambda words, total: np.isin(words, ["win", "click", "meeting"])),
        ({"min_count": 3, "stop_words": ["win"]}, lambda words, total: (total >= 3) & (words != "win")),
    ],
    ids=["min_count", "stop_words", "max_features", "both"],
)
@pytest.mark.parametrize("name", FAMILIES)
def test_words_are_chosen_when_estimating(options, kept, name):
    family, binary = FAMILIES[name], name == "bernoulli"
    model = tb.NaiveBayes(tb.Text(family, **options, **SKLEARN)).fit(MAILS, KINDS)
    every = tb.NaiveBayes(tb.Text(family, **SKLEARN)).fit(MAILS, KINDS)
    assert model.tally_.isclose(every.tally_)  # whatever is chosen, all is counted
    counts = as_matrix(MAILS, binary=binary)
    words = CountVectorizer().fit(MAILS).get_feature_names_out()
    mask = kept(words, counts.sum(axis=0).A1 if hasattr(counts.sum(axis=0), "A1") else np.ravel(counts.sum(axis=0)))
    if name != "bernoulli" or "max_features" not in options:
        matrix = tb.NaiveBayes(family).fit(counts[:, mask], KINDS)
        expected = matrix.predict_proba(as_matrix(NEW, binary=binary)[:, mask])
        np.testing.assert_allclose(model.predict_proba(NEW), expected, atol=1e-12)
    other = every.reestimate(columns=tb.Text(family, **options, **SKLEARN))
    np.testing.assert_allclose(other.predict_proba(NEW), model.predict_proba(NEW), atol=1e-12)


def test_ties_among_the_most_frequent_go_by_the_alphabet():
    one = tb.NaiveBayes(tb.Text(max_features=2)).fit(["b c", "a a"], [0, 1])
    other = tb.NaiveBayes(tb.Text(max_features=2)).fit(["c b", "a a"], [0, 1])
    assert list(one.parameter_table("text").columns) == list(other.parameter_table("text").columns) == ["b", "a"]


def test_hashed_columns_are_chosen_too():
    model = tb.NaiveBayes(tb.Text(hash_bits=16, min_count=2), prior=1).fit(MAILS, KINDS)
    words = tb.NaiveBayes(tb.Text(min_count=2), prior=1).fit(MAILS, KINDS)
    np.testing.assert_allclose(model.predict_proba(NEW), words.predict_proba(NEW), atol=1e-12)


# ---- What is missing, and edges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA], ids=["None", "NaN", "NA"])
def test_missing_text_says_nothing(name, missing):
    family = tb.Text(FAMILIES[name])
    frame = pd.DataFrame({"text": [*MAILS, missing], "kind": [*KINDS, "ham"]}, dtype=object)
    model = tb.NaiveBayes({"text": family}, class_prior="uniform").fit(frame, "kind")
    whole = tb.NaiveBayes({"text": family}, class_prior="uniform").fit({"text": MAILS, "kind": KINDS}, "kind")
    assert model.tally_["text"].isclose(whole.tally_["text"])
    asked = pd.DataFrame({"text": [missing, "win"]}, dtype=object)
    np.testing.assert_allclose(model.predict_proba(asked)[0], [0.5, 0.5])
    np.testing.assert_allclose(model.predict_proba(asked)[1:], whole.predict_proba({"text": ["win"]}), atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    "texts",
    [["", "", ""], [None, None, "a"], ["!", "?", "…"], ["a", "a", "a"]],
    ids=["empty", "missing", "no word", "same"],
)
def test_poor_text_is_learned_from(name, texts):
    model = tb.NaiveBayes(tb.Text(FAMILIES[name])).fit(texts, ["x", "y", "y"])
    proba = model.predict_proba(["a", "", None, "new"])
    assert np.isfinite(proba).all()
    assert proba.sum(axis=1) == pytest.approx(1)


def test_one_row_and_one_class():
    model = tb.NaiveBayes(tb.Text()).fit(["win"], ["spam"])
    assert model.predict(["loss", "win"]).tolist() == ["spam", "spam"]


def test_surrogates_and_bytes_are_text():
    model = tb.NaiveBayes(tb.Text()).fit(["win \ud800 now", "then"], ["a", "b"])
    assert list(model.tally_.domains["text"].levels) == ["win", "now", "then"]
    raw = tb.NaiveBayes({"x": tb.Text()}).fit({"x": pa.array([b"win \xff now", b"then"]), "y": ["a", "b"]}, "y")
    assert list(raw.tally_.domains["x"].levels) == ["win", "now", "then"]


KINDS_OF_COLUMN = {
    "list": list,
    "tuple": tuple,
    "objects": lambda texts: np.array(texts, dtype=object),
    "fixed": np.array,
    "series": pd.Series,
    "string series": lambda texts: pd.Series(texts, dtype="string"),
    "category": lambda texts: pd.Series(texts, dtype="category"),
    "arrow": pa.array,
    "large": lambda texts: pa.array(texts, pa.large_string()),
    "chunks": lambda texts: pa.chunked_array([texts[:3], texts[3:]]),
    "slice": lambda texts: pa.array(["before", *texts]).slice(1),
    "dictionary": lambda texts: pa.array(texts).dictionary_encode(),
}


@pytest.mark.parametrize("kind", KINDS_OF_COLUMN)
def test_every_kind_of_column(kind):
    expected = tb.NaiveBayes(tb.Text()).fit(MAILS, KINDS).predict_proba(MAILS)
    column = KINDS_OF_COLUMN[kind](MAILS)
    if kind not in ("category", "dictionary", "chunks"):
        np.testing.assert_array_equal(tb.NaiveBayes(tb.Text()).fit(column, KINDS).predict_proba(column), expected)
    named = tb.NaiveBayes({"x": tb.Text()}).fit({"x": column, "y": KINDS}, "y")
    np.testing.assert_array_equal(named.predict_proba({"x": column}), expected)


def test_polars_columns():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"x": MAILS, "y": KINDS.tolist()})
    model = tb.NaiveBayes({"x": tb.Text()}).fit(frame, "y")
    expected = tb.NaiveBayes(tb.Text()).fit(MAILS, KINDS).predict_proba(MAILS)
    np.testing.assert_array_equal(model.predict_proba(frame), expected)
    np.testing.assert_array_equal(tb.NaiveBayes(tb.Text()).fit(frame["x"], KINDS).predict_proba(frame["x"]), expected)


def test_a_list_of_strings_is_text():
    model = tb.NaiveBayes().fit(MAILS, KINDS)
    assert model.columns_ == {"text": tb.Text()}


@pytest.mark.parametrize(
    ("column", "said"),
    [([1, 2], "found 1 in row 0"), (["a", 3], r"found 3 in row 1"), ([["a"], ["b"]], "text")],
    ids=["numbers", "a number", "lists"],
)
def test_what_is_no_text_is_refused(column, said):
    with pytest.raises(tb.DataError, match=said):
        tb.NaiveBayes({"x": tb.Text()}).fit({"x": column, "y": ["a", "b"]}, "y")


@pytest.mark.parametrize(
    ("settings_", "said"),
    [
        ({"family": tb.Gaussian()}, "the family of Text"),
        ({"family": tb.Text()}, "the family of Text"),
        ({"ngram_range": (2, 1)}, "ngram_range"),
        ({"ngram_range": 2}, "ngram_range"),
        ({"token_rule": "regex"}, "rule of tokens"),
        ({"min_count": -1}, "min_count"),
        ({"max_features": 0}, "max_features"),
        ({"hash_bits": 40}, "hash_bits"),
        ({"stop_words": "english"}, "stop_words"),
        ({"stop_words": [1]}, "stop_words"),
        ({"stop_words": ["a"], "hash_bits": 4}, "hash_bits"),
    ],
    ids=str,
)
def test_settings_that_cannot_be(settings_, said):
    with pytest.raises(tb.TallybayesError, match=said):
        tb.Text(**settings_)


# ---- Beside other columns, and in other models -----------------------------------------------------------------------


def frame():
    return pd.DataFrame({"subject": MAILS, "size": [3.0, 1, 9, 8, 0, 4, 7, 5], "list": list("aabbabba"), "y": KINDS})


def test_log_odds_of_mixed_columns_add_up():
    mixed = tb.NaiveBayes(
        {"subject": tb.Text(), "size": tb.Gaussian(), "list": tb.Categorical()}, class_prior="uniform"
    )
    alone = [
        tb.NaiveBayes({name: family}, class_prior="uniform")
        for name, family in [("subject", tb.Text()), ("size", tb.Gaussian()), ("list", tb.Categorical())]
    ]
    rows = frame()
    parts = [np.diff(one.fit(rows, "y").predict_log_proba(rows), axis=1) for one in alone]
    whole = np.diff(mixed.fit(rows, "y").predict_log_proba(rows), axis=1)
    np.testing.assert_allclose(whole, sum(parts), atol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_left_out_rows_are_those_of_a_new_fit(name):
    prior = {"multinomial": tb.Dirichlet(0.5), "compound": tb.Dirichlet(0.5), "bernoulli": tb.Beta(1, 1)}
    family = tb.Text(FAMILIES[name], stop_words=["of"])
    model = tb.NaiveBayes(family, prior=prior.get(name, tb.Gamma(1, 1)), class_prior="uniform")
    found = tb.leave_one_out(model, MAILS, KINDS).log_proba
    words = tb.NaiveBayes(family).fit(MAILS, KINDS).tally_
    for row in range(len(MAILS)):
        rest = np.delete(np.arange(len(MAILS)), row)
        again = tb.NaiveBayes(family, prior=model.prior, class_prior="uniform")
        # the words are held: those of the row alone have a place, too
        again.fit_tally(tb.NaiveBayes(family).fit([MAILS[k] for k in rest], KINDS[rest]).tally_.align(words.domains))
        np.testing.assert_allclose(found[row], again.predict_log_proba([MAILS[row]])[0], atol=1e-9)


@pytest.mark.parametrize("name", ["multinomial", "bernoulli"])
def test_unlabeled_text_is_what_its_matrix_is(name):
    family, binary = FAMILIES[name], name == "bernoulli"
    labels = np.array([*KINDS[:6], None, None], dtype=object)
    text = tb.NaiveBayes(tb.Text(family, **SKLEARN), unlabeled="em").fit(MAILS, labels)
    matrix = tb.NaiveBayes(family, unlabeled="em").fit(as_matrix(MAILS, binary=binary), labels)
    expected = matrix.predict_proba(as_matrix(NEW, binary=binary))
    np.testing.assert_allclose(text.predict_proba(NEW), expected, atol=1e-6)
    assert text.tally_.soft
    assert len(text.tally_.domains["text"].levels) == as_matrix(MAILS).shape[1]


def test_mixture_of_text():
    model = tb.Mixture(2, columns=tb.Text(), random_state=0).fit(["a b a", "b a", "x y", "y x y"] * 5)
    first, second = model.predict(["a", "x"])
    assert first != second


SEQUENCES = [["win now", "click here win", "hello mum"], ["hello dad", None, "win win"], ["see you", "hello"]]
STATES = [["s", "s", "h"], ["h", "h", "s"], ["h", "h"]]


@pytest.mark.parametrize("name", ["multinomial", "bernoulli", "poisson"])
def test_chains_emit_text(name):
    family = tb.Text(FAMILIES[name])
    chain = tb.HiddenMarkovModel(columns=family).fit(SEQUENCES, STATES)
    whole = tb.HiddenMarkovModel(columns=family).fit(SEQUENCES[:1], STATES[:1])
    whole.partial_fit(SEQUENCES[1:], STATES[1:])
    assert whole.tally_.isclose(chain.tally_)
    assert chain.predict([["win", "hello"]])[0].tolist() == ["s", "h"]
    learned = tb.HiddenMarkovModel(2, columns=family, random_state=0).fit(SEQUENCES * 3)
    assert learned.converged_
    assert len(learned.predict(SEQUENCES)) == 3


def test_networks_have_leaves_of_text():
    rows = frame()
    net = tb.BayesianNetwork({"y": [], "list": ["y"], "subject": ["y"]}, columns={"subject": tb.Text()}).fit(rows)
    bayes = tb.NaiveBayes({"subject": tb.Text(), "list": tb.Categorical()}, prior=1).fit(rows, "y")
    found = net.predict_proba(rows, "y")
    np.testing.assert_allclose(found, bayes.predict_proba(rows), atol=1e-9)
    assert net.query("y", given={"subject": "win"})["spam"] > 0.5
    again = net.partial_fit(rows[:2]).forget(rows[:2])
    np.testing.assert_allclose(again.predict_proba(rows, "y"), found, atol=1e-9)


def test_networks_expect_labels_beside_text():
    rows = frame().astype({"y": object})
    rows.loc[[1, 4], "y"] = None
    columns = {"subject": tb.Text(tb.Bernoulli())}
    net = tb.BayesianNetwork({"y": [], "subject": ["y"]}, columns=columns, missing="em").fit(rows)
    bayes = tb.NaiveBayes(columns, unlabeled="em", prior=1).fit(rows, "y")
    assert net.tally_["subject"].weight.sum() == pytest.approx(8)
    np.testing.assert_allclose(net.predict_proba(rows, "y"), bayes.predict_proba(rows), atol=1e-4)


# ---- What is told ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_explanations_name_words_and_add_up(name):
    model = tb.NaiveBayes(tb.Text(FAMILIES[name])).fit(MAILS, KINDS)
    found = model.explain(["Win the meeting"])
    assert {"win", "the", "meeting"} <= set(found.columns)
    assert ("(absent words)" in found.columns) == (name in ("bernoulli", "poisson"))
    assert found.contributions.sum() == pytest.approx(float(found.log_odds[0]), abs=1e-9)
    assert found.values[0][found.columns.index("win")] == 1.0


def test_two_columns_of_text_keep_their_words_apart():
    rows = frame().assign(body=MAILS[::-1])
    model = tb.NaiveBayes({"subject": tb.Text(), "body": tb.Text()}).fit(rows, "y")
    assert "subject: win" in model.explain(rows[:1]).columns


def test_tables_and_linear_forms_name_words():
    model = tb.NaiveBayes(tb.Text()).fit(MAILS, KINDS)
    words = list(model.tally_.domains["text"].levels)
    assert list(model.parameter_table("text").columns) == words
    assert model.parameter_table("win")["spam", "share"] > model.parameter_table("win")["ham", "share"]
    assert "meeting" in repr(model.to_linear())
    drawn, _ = model.sample(5, random_state=0)
    assert set(" ".join(drawn).split()) <= set(words)


def test_files_keep_words(tmp_path):
    for family in (tb.Text(), tb.Text(tb.Bernoulli(), ngram_range=(1, 2), stop_words=["the"]), tb.Text(hash_bits=8)):
        model = tb.NaiveBayes(family).fit(MAILS, KINDS)
        model.save(tmp_path / "model.tally")
        again = tb.load(tmp_path / "model.tally")
        assert again.columns == family
        assert again.tally_ == model.tally_
        np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


@given(st.lists(st.tuples(st.text(max_size=12), st.sampled_from("ab")), min_size=1, max_size=8), st.integers(0, 7))
@examples(60)
def test_any_text_in_any_split(rows, cut):
    texts, labels = [text for text, _ in rows], [label for _, label in rows]
    whole = tb.NaiveBayes({"x": tb.Text()}).fit({"x": texts, "y": labels}, "y")
    parts = [
        tb.count({"x": t, "y": y}, whole.tally_.factors)
        for t, y in ((texts[:cut], labels[:cut]), (texts[cut:], labels[cut:]))
        if t
    ]
    assert sum(parts).isclose(whole.tally_)


@pytest.mark.parametrize("name", ["multinomial", "bernoulli"])
def test_models_of_other_words_are_compared(name):
    family = tb.Text(FAMILIES[name])
    before, after = (tb.NaiveBayes(family).fit(MAILS[:n], KINDS[:n]) for n in (5, 8))
    found = tb.difference(before, after)
    (column,) = found.columns
    assert np.isfinite(column.bits)
    assert column.bits > 0
    assert "prize" in column.new_levels
    assert tb.difference(after, after).columns[0].bits == pytest.approx(0, abs=1e-12)


def test_copies_and_pickles():
    model = tb.NaiveBayes(tb.Text()).fit(MAILS, KINDS)
    expected = model.predict_proba(NEW)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict_proba(NEW), expected)


def test_words_that_tell_classes_apart():
    found = tb.NaiveBayes(tb.Text()).fit(MAILS, KINDS).plot_words(most=3).to_frame()
    best = found.groupby("class").word.first()
    assert best["spam"] == "win"
    assert best["ham"] == "meeting"
    assert ((found.low < found.probability) & (found.probability < found.high)).all()


def test_predictive_checks_of_text():
    model = tb.NaiveBayes(tb.Text()).fit(MAILS, KINDS)
    assert "text in spam" in repr(tb.predictive_check(model, MAILS, KINDS, n_draws=10))


@pytest.mark.parametrize("kind", [tb.GaussianDiscriminant, tb.NearestClassMean])
def test_models_of_numbers_say_so(kind):
    with pytest.raises(tb.DataError, match="column 'text' is a column of text; expected numbers"):
        kind().fit(MAILS, KINDS)


def test_learn_says_what_counts_text():
    with pytest.raises(tb.DataError, match=r"tb\.count"):
        tb.fit_distribution(MAILS, tb.Text())


@pytest.mark.slow
def test_many_words_are_few_objects(tmp_path):
    texts = pa.array([" ".join(f"w{k:x}" for k in range(first, first + 500)) for first in range(0, 100_000, 500)])
    gc.collect()
    before = len(gc.get_objects())
    model = tb.NaiveBayes(tb.Text()).fit(texts, np.arange(len(texts)) % 2)
    _ = model.predict(texts[:1])
    model.save(tmp_path / "words.tally")
    again = tb.load(tmp_path / "words.tally")
    gc.collect()
    assert len(again.tally_.domains["text"].levels) == 100_000
    assert len(gc.get_objects()) - before < 5_000
    assert again.tally_ == model.tally_
    assert (tmp_path / "words.tally").stat().st_size < 3_000_000


def test_text_in_too_many_classes_is_refused_in_time():
    texts = [" ".join(f"w{k}-{j}" for j in range(20)) for k in range(30_000)]
    with pytest.raises(tb.TooLargeError, match="text"):
        tb.NaiveBayes(tb.Text()).fit(texts, np.arange(30_000))


def test_text_alone_in_whatever_it_comes():
    model = tb.NaiveBayes(tb.Text()).fit(MAILS, KINDS)
    expected = model.predict(NEW)
    np.testing.assert_array_equal(model.predict([[text] for text in NEW]), expected)
    np.testing.assert_array_equal(model.predict(np.array(NEW)[:, None]), expected)
    assert model.predict([]).tolist() == []
    of_rows = tb.NaiveBayes(tb.Text()).fit(np.array(MAILS)[:, None], KINDS)
    np.testing.assert_array_equal(of_rows.predict(NEW), expected)
    with pytest.raises(tb.DataError, match=r"Pass one text as a list"):
        model.predict("win the prize")
