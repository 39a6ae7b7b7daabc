"""Messages of errors: misspelt names are answered with the closest known one."""

import pytest

import tallybayes as tb
from tallybayes.messages import closest_names, did_you_mean, redacted


@pytest.mark.parametrize(
    ("name", "close"),
    [("specis", "species"), ("Body Mass", "body_mass"), ("SEX", "sex"), ("nothing", None), (3, None)],
)
def test_the_closest_name(name, close):
    assert closest_names(name, ["body_mass", "sex", "species"]) == ([] if close is None else [close])


def test_did_you_mean_lists_the_closest_name_of_each_misspelled_one():
    known = ["body_mass", "sex", "species", 3]
    assert did_you_mean(["specis", "Body Mass", "species "], known) == "Did you mean 'species', 'body_mass'?"
    assert did_you_mean(["nothing"], known, "Check the spelling.") == "Check the spelling."
    assert did_you_mean([], known) == ""


def test_a_misspelt_column_is_answered_with_the_closest():
    rows = {"body_mass": [1.0, 2.0], "species": ["a", "b"]}
    with pytest.raises(tb.DataError, match=r"no column 'specis' .*\n    Did you mean 'species'\?"):
        tb.NaiveBayes().fit(rows, "specis")
    with pytest.raises(tb.PriorError, match="Did you mean 'body_mass'"):
        tb.NaiveBayes(prior={"bodymass": 1.0}).fit(rows, "species")
    network = tb.BayesianNetwork({"rain": [], "wet": ["rain"]}).fit({"rain": ["y", "n"], "wet": ["y", "n"]})
    with pytest.raises(tb.DataError, match="Did you mean 'rain'"):
        network.query("rian")


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:secret@h/db",
        "'postgres://secret@h', 'postgres://x:secret@h'",
        "postgresql://ann:secret secret@h/db",
        "https://ann:secret@h/db and s3://secret@b",
        "postgresql://h/db?user=x&password=secret&sslpassword=secret",
        "host=h user=ann password = 'secret \\' secret' dbname=x",
        "SELECT * FROM postgres_scan('dbname=x password=secret', 'public', 't')",
    ],
)
def test_passwords_are_redacted(text):
    for found in (redacted(text), str(tb.DataError(f"found {text}."))):
        assert "secret" not in found
    assert "secret" not in str(tb.TallybayesError(text, text).args)


def test_other_text_is_left_alone():
    for text in ("password=strong", "a@b.org", "see https://example.org/x", "host h, password=p"):
        assert redacted(text) == text


def test_sources_are_named_without_passwords():
    from tallybayes.data.source import Source

    assert Source("the table postgresql://ann:secret@h/db").name == "the table postgresql://…@h/db"


def test_a_misspelt_class_or_level_is_answered_with_the_closest():
    rows = {"rain": ["yes", "no", "yes"], "wet": ["soaked", "dry", "soaked"]}
    model = tb.NaiveBayes().fit(rows, "wet")
    with pytest.raises(tb.LabelError, match=r"no class 'soakd' .*\n    Did you mean 'soaked'\?"):
        model.decide(rows, recall=0.9, held_out=(rows, rows["wet"]), positive="soakd")
    network = tb.BayesianNetwork({"wet": ["rain"]}).fit(rows)
    with pytest.raises(tb.LabelError, match=r"node 'wet' has no level 'soakd' .*\n    Did you mean 'soaked'\?"):
        network.query("rain", {"wet": "soakd"})
    with pytest.raises(tb.LabelError, match="Add it with partial_fit"):
        model.decide(rows, recall=0.9, held_out=(rows, rows["wet"]), positive=3)
