"""What was taken out can be shown, checked, and says nothing of the rows."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.models.receipt import digest


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "sky": rng.choice(["sun", "rain", "very secret word"], n),
            "eggs": rng.poisson(2, n),
            "y": rng.choice(["no", "yes"], n),
        }
    )


def learned(make, frame, y):
    return make().partial_fit(frame, **({} if y is None else {"y": y}))


MODELS = {
    "NaiveBayes": (tb.NaiveBayes, ["size", "sky", "eggs", "y"], "y"),
    "GaussianDiscriminant": (tb.GaussianDiscriminant, ["size", "eggs", "y"], "y"),
    "NearestClassMean": (tb.NearestClassMean, ["size", "eggs", "y"], "y"),
    "BayesianNetwork": (lambda: tb.BayesianNetwork({"sky": ["y"]}), ["sky", "y"], None),
    "LinearRegression": (tb.LinearRegression, ["size", "eggs"], "size"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_receipt_is_checked_against_a_model_that_never_saw_the_rows(name, tmp_path):
    make, columns, y = MODELS[name]
    frame = rows()[columns]
    model = learned(make, frame, y)
    before, given = digest(model), {} if y is None else {"y": y}
    receipt = model.forget(frame[60:], **given, receipt=True)
    assert receipt.model == name
    assert receipt.rows == 20
    assert receipt.before == before != receipt.after == digest(model)
    if y == "y":
        assert receipt.classes == frame[60:]["y"].value_counts().to_dict()
    found = tb.verify_receipt(receipt, model, learned(make, frame[:60], y))
    assert found.ok
    assert found == (True, True)
    assert "NO" not in repr(found)
    another = learned(make, frame[:59], y)
    assert tb.verify_receipt(receipt, model, another) == (True, False)
    assert tb.verify_receipt(receipt, another) == (False, None)
    assert not tb.verify_receipt(receipt, another).ok
    receipt.save(tmp_path / "receipt.json")
    assert tb.Receipt.load(tmp_path / "receipt.json") == receipt
    assert "secret" not in (tmp_path / "receipt.json").read_text()


@pytest.mark.parametrize("make", [lambda: tb.CountForest(6), lambda: tb.CountBoosting(4)], ids=["forest", "boosting"])
def test_receipts_of_trees_list_what_their_structure_may_show(make, tmp_path):
    frame = rows().assign(y=lambda rows: rows["y"].where(rows["size"] < 1.5, "rare"))
    model = make().fit(frame, "y")
    before, never = digest(model), model.without_rows().partial_fit(frame[:60], "y")
    receipt = model.forget(frame[60:], "y", receipt=True)
    assert (receipt.before, receipt.after) == (before, digest(model))
    assert (receipt.rows, receipt.classes) == (20, frame[60:]["y"].value_counts().to_dict())
    assert tb.verify_receipt(receipt, model, never) == (True, True)
    assert tb.verify_receipt(receipt, model, never.forget(frame[:1], "y")) == (True, False)
    assert tb.verify_receipt(receipt, model, make().fit(frame[:60], "y")) == (True, False)  # other trees
    residue = "\n".join(receipt.possible_residue)
    assert "splits, bin edges and levels" in residue
    assert ("64-bit hashes" in residue) is isinstance(model, tb.CountBoosting)
    receipt.save(tmp_path / "receipt.json")
    assert tb.Receipt.load(tmp_path / "receipt.json") == receipt
    assert "secret" not in (tmp_path / "receipt.json").read_text()


@pytest.mark.filterwarnings("ignore")
def test_receipts_of_ensembles_with_trees():
    frame = rows(300).assign(eggs=lambda rows: rows["size"] ** 2 + rows["eggs"])
    frame["y"] = np.where(frame["eggs"] % 1 < 0.5, "no", "yes")
    model = tb.AutoClassifier().fit(frame, "y")
    assert any(hasattr(member.model, "structure_") for member in model.members_)
    receipt = model.forget(frame[:7], "y", receipt=True)
    assert receipt.rows == 7
    assert sum(receipt.classes.values()) == 7
    assert tb.verify_receipt(receipt, model).ok
    assert "splits, bin edges" in "\n".join(receipt.possible_residue)


def test_whole_counts_have_one_digest_whatever_order_their_levels_came_in():
    frame = rows()[["sky", "y"]]
    model = tb.NaiveBayes().fit(frame[::-1], "y")
    receipt = model.forget(frame[50:], "y", receipt=True)
    assert receipt.after == digest(tb.NaiveBayes().fit(frame[:50], "y"))
    assert receipt.after != digest(tb.NaiveBayes().fit(frame[:51], "y"))


def test_receipts_follow_each_other():
    frame = rows()
    model = tb.NaiveBayes().fit(frame, "y")
    first = model.forget(frame[70:], "y", receipt=True)
    second = model.forget(frame[:5], "y", sample_weight=np.full(5, 0.5), receipt=True)
    assert second.before == first.after
    assert second.rows == 2.5


def test_what_may_remain_is_listed():
    frame = rows(300)
    suggested = tb.NaiveBayes("suggest", calibration="temperature").fit(frame, "y")
    told = "\n".join(suggested.forget(frame[:3], "y", receipt=True).possible_residue)
    assert "columns_" in told
    assert "calibration_" in told
    pairs = tb.TreeAugmentedNaiveBayes().fit(frame, "y").forget(frame[:3], "y", receipt=True).possible_residue
    assert any("bin edges of size" in line for line in pairs)
    assert not any("parents_" in line for line in pairs)  # the tree follows the counts
    held = tb.NaiveBayes(prior=tb.NaiveBayes().fit(frame, "y").prior_).fit(frame, "y")
    assert any("prior, " in line for line in held.forget(frame[:3], "y", receipt=True).possible_residue)
    declared = tb.NaiveBayes({"sky": tb.Categorical(levels=["sun", "rain", "very secret word"])}).fit(frame, "y")
    assert any("declared" in line for line in declared.forget(frame[:3], "y", receipt=True).possible_residue)
    assert tb.NaiveBayes().fit(frame, "y").forget(frame[:3], "y", receipt=True).possible_residue == (
        "copies, files and predictions that were made before",
    )
    chosen = tb.AutoClassifier().fit(frame, "y")
    receipt = chosen.forget(frame[:3], "y", receipt=True)
    assert receipt.rows == 3
    assert "weights" in receipt.possible_residue[0]
    assert tb.verify_receipt(receipt, chosen).ok
    metric = tb.NearestClassMean("learned").fit(frame[["size", "eggs"]], frame["y"])
    assert (
        "the learned metric"
        in metric.forget(frame[["size", "eggs"]][:3], frame["y"][:3], receipt=True).possible_residue
    )
    assert "may still show" in repr(receipt)


def test_sequences():
    model = tb.HiddenMarkovModel().fit([["a", "b"], ["b", "b"]], [["x", "y"], ["y", "y"]])
    receipt = model.forget([["b", "b"]], [["y", "y"]], receipt=True)
    assert receipt.rows == 2
    assert tb.verify_receipt(receipt, model, tb.HiddenMarkovModel().fit([["a", "b"]], [["x", "y"]])).ok


def test_a_tree_is_that_of_the_rows_that_remain():
    rng = np.random.default_rng(0)
    a, c, y = rng.integers(0, 2, (3, 400))
    frame = pd.DataFrame({"a": a, "b": np.where(np.arange(400) < 200, a, c), "c": c, "y": y}).astype(str)
    model = tb.TreeAugmentedNaiveBayes().fit(frame, "y")
    receipt = model.forget(frame[:200], "y", receipt=True)
    never = tb.TreeAugmentedNaiveBayes().fit(frame[200:], "y")
    assert model.parents_ == never.parents_ != tb.TreeAugmentedNaiveBayes().fit(frame[:200], "y").parents_
    assert tb.verify_receipt(receipt, model, never).ok


def test_a_receipt_that_was_tampered_with_is_refused(tmp_path):
    frame = rows()
    model = tb.NaiveBayes().fit(frame, "y")
    model.forget(frame[70:], "y", receipt=True).save(tmp_path / "receipt.json")
    told = json.loads((tmp_path / "receipt.json").read_text())
    for name in told:
        (tmp_path / "other.json").write_text(json.dumps({**told, name: "0" * 64}))
        with pytest.raises(tb.FileError, match="not a receipt, or was changed"):
            tb.Receipt.load(tmp_path / "other.json")
    (tmp_path / "other.json").write_text(json.dumps(dict(reversed(told.items())), indent=7))  # the same, said otherwise
    assert tb.verify_receipt(tb.Receipt.load(tmp_path / "other.json"), model).ok


def test_plain_forgetting_is_as_it_was_and_tells_of_the_receipt():
    model = tb.NaiveBayes().fit(rows(), "y")
    assert model.forget(rows()[:5], "y") is model
    assert "receipt" in inspect.signature(model.forget).parameters
    assert "receipt : bool" in inspect.getdoc(model.forget)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format": 2}', json.dumps({"format": 1, "model": 3}), "{" * 9000]
)
def test_a_file_that_is_no_receipt_is_refused(content, tmp_path):
    (tmp_path / "x").write_text(content)
    with pytest.raises(tb.FileError, match="not a receipt"):
        tb.Receipt.load(tmp_path / "x")
    with pytest.raises(tb.DataError, match="Receipt"):
        tb.verify_receipt("x", None)
