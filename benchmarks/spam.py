"""The anti-spam filter beside bogofilter and scikit-learn: how well it judges, of how few mails, and how fast.

Run it with ``python benchmarks/spam.py [quality] [choices] [few] [curve] [speed]``; all of them without words. The
SpamAssassin corpus and the SMS collection are in ``../shared/data``; bogofilter is a Debian package. What is missing is
left out, and says so. Splits are random halves, five seeds; every contender has the same mails, byte for byte.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import MultinomialNB

from tallybayes.apps.spam.spam_calibration import CalibrationMessages, calibrate
from tallybayes.apps.spam.spam_score import UNCALIBRATED, SpamCalibration, SpamTotals, Thresholds, kind_of, score_tokens
from tallybayes.apps.spam.tokens.html_text import read_page
from tallybayes.apps.spam.tokens.message_tokens import tokens_of
from tallybayes.apps.spam.tokens.mime import parts_of

DATA = Path(__file__).parents[2] / "shared" / "data"
SEEDS = range(5)
Tokens = Callable[[bytes], list[str]]


# ---- Mails ------------------------------------------------------------------------------------------------------


def mails() -> tuple[list[bytes], np.ndarray]:
    """The SpamAssassin corpus, and which are spam, in the order of its folders."""
    raws, spam = [], []
    with tarfile.open(DATA / "spamassassin" / "spamassassin-2003.tar.xz", "r|xz") as files:
        for member in files:
            if member.isfile() and "-" in member.name:
                raws.append(files.extractfile(member).read())
                spam.append("ham" not in member.name)
    return raws, np.array(spam)


def body_alone(raw: bytes) -> bytes:
    """A mail without its headers, but for what says how its body is to be decoded."""
    head, _, body = raw.partition(b"\n\n")
    lines = re.sub(rb"\n[ \t]+", b" ", head).split(b"\n")
    kept = [line for line in lines if re.match(rb"content-(?:type|transfer-encoding)\s*:", line, re.IGNORECASE)]
    return b"\n".join(kept) + b"\n\n" + body


def short_messages() -> tuple[list[bytes], np.ndarray]:
    """The SMS collection, every text once, and which are spam."""
    lines = (DATA / "sms-spam" / "SMSSpamCollection").read_text(encoding="utf-8").splitlines()
    texts = {text: label for label, text in (line.split("\t", 1) for line in reversed(lines))}
    return [b"\n" + text.encode() + b"\n" for text in texts], np.array([label == "spam" for label in texts.values()])


def corpora() -> Iterator[tuple[str, list[bytes], np.ndarray]]:
    """Every corpus that is here."""
    if (DATA / "spamassassin").is_dir():
        raws, spam = mails()
        yield "SpamAssassin, headers in", raws, spam
        yield "SpamAssassin, headers out", [body_alone(raw) for raw in raws], spam
    else:
        say("SpamAssassin left out: no ../shared/data/spamassassin")
    if (DATA / "sms-spam").is_dir():
        yield "SMS, distinct texts", *short_messages()
    else:
        say("SMS left out: no ../shared/data/sms-spam")


def say(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


# ---- Contenders: log odds of the test mails, learned from the train mails ---------------------------------------


class Filter:
    """What `tally spam` learns and judges, in memory."""

    def __init__(self, lists: list[list[str]], spam: np.ndarray) -> None:
        self.number: dict[str, int] = {}
        ids = [self.number.setdefault(token, len(self.number)) for tokens in lists for token in tokens]
        starts = np.cumsum([0, *map(len, lists)])
        own = np.repeat(spam, np.diff(starts))
        counts = [np.bincount(np.array(ids, np.int64)[own == which], minlength=len(self.number)) for which in (0, 1)]
        kinds = np.array([kind_of(word) for word in self.number], np.int64)
        self.messages = CalibrationMessages(starts, np.array(ids, np.int64), spam, kinds, *counts)
        self.totals = SpamTotals(
            int((~spam).sum()), int(spam.sum()), *(int(one.sum()) for one in counts), len(self.number)
        )
        self.pairs = dict(zip(self.number, zip(*(one.tolist() for one in counts), strict=True), strict=True))
        self.calibration = calibrate(self.messages)

    def log_odds(self, tokens: list[str], calibration: SpamCalibration | None = None) -> float:
        ham, spam = zip(*(self.pairs.get(token, (0, 0)) for token in tokens), strict=True) if tokens else ((), ())
        return score_tokens(tokens, ham, spam, self.totals, calibration or self.calibration).log_odds


def with_tally(lists: list[list[str]], spam: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    learned = Filter([lists[row] for row in train], spam[train])
    return np.array([learned.log_odds(lists[row]) for row in test])


def with_scikit_learn(raws: list[bytes], spam: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    counts = CountVectorizer(encoding="latin-1")
    model = MultinomialNB().fit(counts.fit_transform([raws[row] for row in train]), spam[train])
    found = model.predict_joint_log_proba(counts.transform([raws[row] for row in test]))
    return found[:, 1] - found[:, 0]


def with_bogofilter(files: list[str], spam: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:

        def run(*options: str, rows: np.ndarray) -> str:
            names = "".join(f"{files[row]}\n" for row in rows)
            command = ["bogofilter", "-d", folder, *options, "-b"]
            return subprocess.run(command, input=names, text=True, capture_output=True, check=False).stdout

        run("-n", rows=train[~spam[train]])
        run("-s", rows=train[spam[train]])
        lines = run("-T", rows=test).splitlines()
    probability = np.clip([float(line.split()[-1]) for line in lines], 1e-6, 1 - 1e-6)
    return np.log(probability / (1 - probability))


# ---- Measures ---------------------------------------------------------------------------------------------------


def measures(spam: np.ndarray, log_odds: np.ndarray, cuts: tuple[float, float]) -> list[float]:
    """Errors at 1/2 and at the contender's own cuts, (1 − AUC) % and log loss (probabilities clipped at 1e-6)."""
    probability = np.clip(1 / (1 + np.exp(-np.clip(log_odds, -700, 700))), 1e-6, 1 - 1e-6)
    low, high = cuts
    return [
        100 * (probability[~spam] > 0.5).mean(),
        100 * (probability[spam] <= 0.5).mean(),
        100 * (probability[~spam] >= high).mean(),
        100 * (probability[spam] <= low).mean(),
        100 * ((probability > low) & (probability < high)).mean(),
        100 * (1 - roc_auc_score(spam, log_odds)),
        -np.log(np.where(spam, probability, 1 - probability)).mean(),
    ]


HEADER = (
    "| | false + % | false − % | verdict: ham as spam % | spam as ham % | unsure % | (1−AUC) % | log loss "
    "| false − % at bogofilter's false + |\n|---|---|---|---|---|---|---|---|---|"
)


def missed_at(spam: np.ndarray, log_odds: np.ndarray, false_positives: float) -> float:
    """What share of spam is missed where no more ham than this share, in per cent, is called spam."""
    ham = np.sort(log_odds[~spam])
    allowed = int(np.floor(false_positives / 100 * len(ham) + 1e-9))
    return 100 * (log_odds[spam] <= ham[len(ham) - 1 - allowed]).mean()


def quality() -> None:
    """All contenders on all corpora."""
    bogofilter = shutil.which("bogofilter")
    if not bogofilter:
        say("bogofilter left out: it is not installed")
    own = (Thresholds().ham, Thresholds().spam)
    for name, raws, spam in corpora():
        lists = [tokens_of(raw) for raw in raws]
        found: dict[str, list[list[float]]] = {}
        with tempfile.TemporaryDirectory() as folder:
            files = [f"{folder}/{row}" for row in range(len(raws))]
            for file, raw in zip(files, raws, strict=True):
                Path(file).write_bytes(raw)
            for seed in SEEDS:
                train, test = np.array_split(np.random.default_rng(seed).permutation(len(raws)), 2)
                odds = {"tally spam": (with_tally(lists, spam, train, test), own)}
                if bogofilter:
                    odds["bogofilter"] = with_bogofilter(files, spam, train, test), (0.45, 0.99)
                odds["CountVectorizer + MultinomialNB"] = with_scikit_learn(raws, spam, train, test), (0.5, 0.5)
                yardstick = measures(spam[test], *odds["bogofilter"])[0] if bogofilter else 0.5
                for contender, (scores, cuts) in odds.items():
                    row = [*measures(spam[test], scores, cuts), missed_at(spam[test], scores, yardstick)]
                    found.setdefault(contender, []).append(row)
        say(f"\n### {name}: {(~spam).sum():,} ham, {spam.sum():,} spam, halves, {len(SEEDS)} seeds\n\n{HEADER}")
        for contender, rows in found.items():
            say(f"| {contender} | " + " | ".join(f"{value:.3g}" for value in np.mean(rows, axis=0)) + " |")


# ---- Which model, which words -----------------------------------------------------------------------------------


def pairs_too(raw: bytes) -> list[str]:
    """Tokens, and pairs of neighbors in the text."""
    import tallybayes as tb

    pairs: list[str] = []
    for part in parts_of(raw):
        if isinstance(part.content, str):
            text = read_page(part.content).visible if part.kind == "text/html" else part.content
            pairs += tb.tokenize(text, ngram_range=(2, 2))
    return tokens_of(raw) + [f"{pair.replace(':', ' ')} " for pair in dict.fromkeys(pairs)]


def without(*prefixes: str) -> Tokens:
    return lambda raw: [token for token in tokens_of(raw) if not token.startswith(prefixes)]


def untempered(family: str) -> Callable[..., np.ndarray]:
    """Naive Bayes as it is, with the library's classes on the matrix of presence."""

    def contend(lists: list[list[str]], spam: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        import scipy.sparse as sp

        import tallybayes as tb

        number: dict[str, int] = {}
        for row in train:
            for token in lists[row]:
                number.setdefault(token, len(number))
        known = [[number[token] for token in tokens if token in number] for tokens in lists]
        starts = np.cumsum([0, *map(len, known)])
        matrix = sp.csr_array((np.ones(starts[-1], np.int64), np.concatenate(known).astype(int), starts))
        model = tb.NaiveBayes(getattr(tb, family)(), prior=0.1).fit(matrix[train], spam[train])
        return np.asarray(model.predict_log_proba(matrix[test])) @ [-1.0, 1.0]

    return contend


def choices() -> None:
    """What the filter is made of, each left out or put in: log loss and (1 − AUC) %."""
    ways: dict[str, tuple[Tokens, Callable[..., np.ndarray]]] = {
        "the filter": (tokens_of, with_tally),
        "one slope for all kinds": (tokens_of, with_one_slope),
        "without style, shapes and capitals": (without("style:", "shape:", "upper:"), with_tally),
        "with pairs of words": (pairs_too, with_tally),
        "multinomial, neither tempered nor calibrated": (tokens_of, untempered("Multinomial")),
        "Bernoulli (absent words count), neither tempered nor calibrated": (tokens_of, untempered("Bernoulli")),
    }
    say("\n### Ablation: log loss, (1−AUC) %, tokens a mail, words\n\n| | " + " | ".join(
        ("headers in", "headers out", "SMS")) + " |\n|---|---|---|---|")  # fmt: skip
    everything = list(corpora())
    for name, (tokens, contend) in ways.items():
        cells = []
        for _, raws, spam in everything:
            lists = [tokens(raw) for raw in raws]
            rows = []
            for seed in list(SEEDS)[:2]:
                train, test = np.array_split(np.random.default_rng(seed).permutation(len(raws)), 2)
                rows.append(measures(spam[test], contend(lists, spam, train, test), (0.5, 0.5))[-2:])
            auc, loss = np.mean(rows, axis=0)
            words = len({token for one in lists for token in one})
            cells.append(f"{loss:.4f}, {auc:.3f}, {sum(map(len, lists)) / len(lists):.0f}, {words:,}")
        say(f"| {name} | " + " | ".join(cells) + " |")


def with_one_slope(lists: list[list[str]], spam: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """The filter, were all tokens of one kind."""
    return with_tally([[token.replace(":", " ") for token in tokens] for tokens in lists], spam, train, test)


# ---- Few mails, and one after the other -------------------------------------------------------------------------


def few() -> None:
    """Learned from so many mails of each class: how honest, how often wrong."""
    say(
        "\n### Few training mails, equal numbers of each class: log loss, ham classified as spam %, "
        "spam classified as ham % (verdicts)\n"
    )
    sizes = (2, 10, 30, 100, 500)
    say("| | " + " | ".join(f"{size} + {size}" for size in sizes) + " |\n|---|" + "---|" * len(sizes))
    for name, raws, spam in corpora():
        lists, cells = [tokens_of(raw) for raw in raws], []
        for size in sizes:
            rows = []
            for seed in SEEDS:
                order = np.random.default_rng(seed).permutation(len(raws))
                train = np.concatenate([order[spam[order]][:size], order[~spam[order]][:size]])
                test = np.setdiff1d(order, train)[::3]
                odds = with_tally(lists, spam, train, test)
                rows.append(measures(spam[test], odds, (Thresholds().ham, Thresholds().spam)))
            mean = np.mean(rows, axis=0)
            cells.append(f"{mean[-1]:.3f}, {mean[2]:.2f}, {mean[3]:.1f}")
        say(f"| {name} | " + " | ".join(cells) + " |")


def curve() -> None:
    """Classified, then learned, one after the other: what was wrong until then."""
    if not (DATA / "spamassassin").is_dir():
        say("the curve left out: no ../shared/data/spamassassin")
        return
    raws, spam = mails()
    order = np.random.default_rng(0).permutation(len(raws))
    ham, junk, pairs = 0, 0, {}
    words, kept, odds = [0, 0], [], np.zeros(len(order))
    calibration, calibrated = UNCALIBRATED, 0
    for number, row in enumerate(order):
        tokens = tokens_of(raws[row])
        counts = [pairs.setdefault(token, [0, 0]) for token in tokens]
        totals = SpamTotals(ham, junk, *words, len(pairs))
        odds[number] = score_tokens(
            tokens, [one[0] for one in counts], [one[1] for one in counts], totals, calibration
        ).log_odds
        for one in counts:
            one[int(spam[row])] += 1
        words[int(spam[row])] += len(tokens)
        ham, junk = ham + (not spam[row]), junk + bool(spam[row])
        kept.append(tokens)
        if number + 1 >= 1.1 * calibrated + 1:
            calibration, calibrated = Filter(kept, spam[order[: number + 1]]).calibration, number + 1
    say("\n### Prequential evaluation: learned after each verdict\n")
    say("| mails | false + % | false − % | log loss |\n|---|---|---|---|")
    for first, last in ((0, 30), (30, 100), (100, 300), (300, 1000), (1000, 3000), (3000, len(order))):
        found = measures(spam[order[first:last]], odds[first:last], (0.5, 0.5))
        say(f"| {first + 1:,} to {last:,} | {found[0]:.2f} | {found[1]:.2f} | {found[-1]:.4f} |")


# ---- Speed ------------------------------------------------------------------------------------------------------


def speed() -> None:
    """Raw mail files: learned and checked in bulk, end to end, and one mail in a process of its own."""
    if not (DATA / "spamassassin").is_dir() or not shutil.which("bogofilter"):
        say("speed left out: no ../shared/data/spamassassin, or bogofilter is not installed")
        return
    tally = [sys.executable, "-m", "tallybayes", "spam"]
    raws, spam = mails()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for row, raw in enumerate(raws):
            path = place / ("spam" if spam[row] else "ham") / f"{row:05}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(raw)
        names = {kind: "".join(f"{file}\n" for file in sorted((place / kind).iterdir())) for kind in ("ham", "spam")}
        seconds: dict[str, list[float]] = {}
        # As pip installs it: modules are compiled once, whatever the environment of a developer says.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/bytecode", "PYTHONDONTWRITEBYTECODE": ""}

        def timed(what: str, *commands: tuple[list[str], str]) -> None:
            start = time.perf_counter()
            for command, given in commands:
                subprocess.run(command, input=given, text=True, stdout=subprocess.DEVNULL, check=False, env=environment)
            seconds.setdefault(what, []).append(time.perf_counter() - start)

        for _ in range(5):
            shutil.rmtree(place / "words", ignore_errors=True)
            (place / "words").mkdir()
            for old in place.glob("store*"):
                old.unlink()
            bogofilter, store = ["bogofilter", "-d", str(place / "words"), "-b"], ["--store", str(place / "store")]
            both = ["--ham", str(place / "ham"), "--spam", str(place / "spam")]
            timed("bogofilter learn", ([*bogofilter, "-n"], names["ham"]), ([*bogofilter, "-s"], names["spam"]))
            timed("tally learn", ([*tally, "learn", *store, *both], ""))
            timed("bogofilter check", ([*bogofilter, "-T"], names["ham"] + names["spam"]))
            timed("tally check", ([*tally, "check", *store, str(place / "ham"), str(place / "spam")], ""))
            for file in (names["ham"].splitlines() + names["spam"].splitlines())[::2000]:
                timed("tally check, one mail", ([*tally, "check", *store, file], ""))
    median = {what: float(np.median(found)) for what, found in seconds.items()}
    say(f"\n### {len(raws):,} mails in files, {sum(map(len, raws)) / 1e6:.0f} MB, {os.cpu_count()} cores\n")
    say("| work | bogofilter | tally spam | ratio |\n|---|---|---|---|")
    for work in ("learn", "check"):
        theirs, ours = median[f"bogofilter {work}"], median[f"tally {work}"]
        say(f"| {work} in bulk | {theirs:.2f} s | {ours:.2f} s | {theirs / ours:.2f} × |")
    say(f"| check of one mail, a process each | | {1000 * median['tally check, one mail']:.0f} ms | |")


if __name__ == "__main__":
    asked = sys.argv[1:] or ["quality", "choices", "few", "curve", "speed"]
    for part in asked:
        {"quality": quality, "choices": choices, "few": few, "curve": curve, "speed": speed}[part]()
