"""Text columns of AutoClassifier: detected or declared, counted by members of their own."""

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.errors import DataError, ExportError
from tests.shared import DATA, needs

GOOD = ["win", "cash", "prize", "click", "free"]
PLAIN = ["meeting", "agenda", "minutes", "lunch", "report"]
COMMON = ["the", "a", "to", "of", "now", "today", "please", "monday"]


def inbox(n=240, seed=0):
    """Mails with a subject of several words, a number that depends on the class, and a category."""
    rng = np.random.default_rng(seed)
    spam = rng.random(n) < 0.3
    subjects = []
    for number, one in enumerate(spam):
        words = [*rng.choice(GOOD if one else PLAIN, 2), *rng.choice(GOOD + PLAIN, 1), *rng.choice(COMMON, 3)]
        subjects.append(" ".join([*rng.permutation(words), f"n{seed}x{number}"]))
    size = rng.normal(np.where(spam, 0.0, 1.0))
    day = rng.choice(["mon", "tue"], n)
    return pd.DataFrame({"subject": subjects, "size": size, "day": day, "kind": np.where(spam, "spam", "ham")})


@pytest.fixture(scope="module")
def fitted():
    return tb.AutoClassifier().fit(inbox(), "kind")


def loss(model, rows, y):
    proba = model.predict_proba(rows)
    return -np.log(proba[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean()


def test_text_improves_on_the_other_columns(fitted):
    new = inbox(seed=1)
    without = tb.AutoClassifier().fit(inbox().drop(columns="subject"), "kind")
    only_text = tb.NaiveBayes({"subject": tb.Text()}).fit(inbox(), "kind")
    assert loss(fitted, new, new["kind"]) < loss(without, new, new["kind"]) - 0.1
    assert loss(fitted, new, new["kind"]) < loss(only_text, new, new["kind"])
    kinds = {spec.kind for spec, _ in fitted.members_}
    assert any(kind.endswith("of subject") for kind in kinds)
    assert not all(kind.endswith("of subject") for kind in kinds)


def test_trees_leave_text_out(fitted):
    for spec, _ in fitted.members_:
        if spec.trees is not None:
            assert "subject" not in spec.view.read_names()


def test_contributions_of_text_sum_to_the_log_odds(fitted):
    rows = inbox(40, seed=2)
    found = fitted.explain(rows)
    assert "subject" in found.columns
    log_proba = np.sort(fitted.predict_log_proba(rows), axis=1)
    np.testing.assert_allclose(found.log_odds, log_proba[:, -1] - log_proba[:, -2], rtol=1e-9)
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.log_odds, rtol=1e-9)
    assert rows["subject"][0] in found.values[0]


def test_missing_text_contributes_nothing(fitted):
    rows = inbox(3, seed=3).assign(subject=None)
    found = fitted.explain(rows)
    assert not found.contributions[:, found.columns.index("subject")].any()
    assert fitted.feature_importance(inbox(), "kind").columns[0] == "subject"


def test_rows_with_text_are_counted_merged_and_forgotten(fitted):
    rows, more = inbox(), inbox(60, seed=4)
    before = fitted.predict_proba(more)
    left, right = (tb.AutoClassifier(spec=fitted.spec_).fit(part, "kind") for part in (rows[:100], rows[100:]))
    np.testing.assert_allclose((left + right).predict_proba(more), before, atol=1e-12)
    other = fitted.without_rows().partial_fit(rows, "kind").partial_fit(more, "kind")
    assert not np.allclose(other.predict_proba(more), before)
    np.testing.assert_allclose(other.forget(more, "kind").predict_proba(more), before, atol=1e-12)


def test_a_saved_model_reads_text(fitted, tmp_path):
    fitted.save(tmp_path / "model.tally")
    loaded = tb.load(tmp_path / "model.tally")
    rows = inbox(30, seed=5)
    np.testing.assert_array_equal(loaded.predict_proba(rows), fitted.predict_proba(rows))
    assert loaded.spec_ == fitted.spec_


def test_text_is_not_exported(fitted):
    with pytest.raises(ExportError, match="Text is not exported"):
        fitted.to_sql("duckdb", "inbox")


@pytest.mark.parametrize("form", [list, np.array, pd.Series, lambda texts: np.array(texts, dtype=object)])
def test_a_list_of_texts_is_read(form):
    rows = inbox()
    texts, y = rows["subject"].tolist(), rows["kind"].to_numpy()
    model = tb.AutoClassifier().fit(form(texts), y)
    assert {spec.model for spec, _ in model.members_} == {"NaiveBayes"}
    new = inbox(seed=6)
    assert model.score(new["subject"].tolist(), new["kind"]) > 0.8
    np.testing.assert_array_equal(model.predict(form(texts[:3])), model.predict(texts[:3]))
    before = model.predict_proba(texts)
    model.partial_fit(form(new["subject"].tolist()), new["kind"]).forget(form(new["subject"].tolist()), new["kind"])
    np.testing.assert_allclose(model.predict_proba(texts), before, atol=1e-12)
    assert len(model.predict([])) == 0


def test_texts_are_cross_validated():
    rows = inbox()
    found = tb.cross_validate(tb.AutoClassifier(), rows["subject"].tolist(), rows["kind"], folds=3)
    assert found.accuracy.value > 0.8
    assert found.log_loss.value < 0.5


def test_a_declared_column_is_text_and_its_family_is_kept():
    rows = inbox(120).assign(subject=lambda frame: frame["subject"].str.replace(r" n0x\d+", "", regex=True))
    twice = pd.concat([rows, rows], ignore_index=True)  # half of the subjects are different
    undeclared = tb.AutoClassifier(single=True).fit(twice, "kind")
    assert not undeclared._text_readers
    model = tb.AutoClassifier(columns={"subject": tb.Text(ngram_range=(1, 3)), ...: "auto"}).fit(twice, "kind")
    assert model._text_readers["subject"].family == tb.Text(ngram_range=(1, 3))
    assert [entry.name for entry in model.leaderboard_.tried if "subject" in entry.name] == ["text of subject"]


def test_groups_are_held_out_of_texts():
    rows = inbox(60)
    copies = pd.concat([rows] * 4, ignore_index=True)
    group = np.tile(np.arange(60), 4)
    columns = {"subject": tb.Text()}
    random = tb.AutoClassifier(columns=columns).fit(copies[["subject", "kind"]], "kind").leaderboard_
    grouped = tb.AutoClassifier(columns=columns).fit(copies[["subject", "kind"]], "kind", groups=group).leaderboard_
    assert grouped.loss > random.loss + 0.1  # copies of a held-out text give its class away


def test_a_wrong_declaration_raises():
    with pytest.raises(DataError, match=r"column 'size' is Gaussian.*expected tb\.Text"):
        tb.AutoClassifier(columns={"size": tb.Gaussian()}).fit(inbox(), "kind")
    with pytest.raises(DataError, match="topic"):
        tb.AutoClassifier(columns={"topic": tb.Text()}).fit(inbox(), "kind")


@needs("sms-spam")
def test_real_messages_are_classified_better_than_by_word_counts_alone():
    lines = (DATA / "sms-spam" / "SMSSpamCollection").read_text(encoding="utf-8").splitlines()
    y, texts = zip(*(line.split("\t", 1) for line in lines[:2500]), strict=True)
    y = np.array(y)
    model = tb.AutoClassifier().fit(list(texts[:1500]), y[:1500])
    words = tb.NaiveBayes(tb.Text()).fit(list(texts[:1500]), y[:1500])
    assert model.score(list(texts[1500:]), y[1500:]) > 0.975
    assert loss(model, list(texts[1500:]), y[1500:]) < loss(words, list(texts[1500:]), y[1500:])
