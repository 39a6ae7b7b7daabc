"""Models travel: sealed files, pickle, joblib, clone."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import tallybayes as tb
from tallybayes.errors import FileError

FRAME = pd.DataFrame(
    {
        "größe": [1.0, 2.5, np.nan, 4.0, 3.5, 0.5],
        "色": ["赤", "青", None, "赤", "緑", "青"],
        "calls": [1, 0, 3, 2, 5, 4],
    }
)
COLUMNS = {("größe",): tb.TiedGaussian(), "色": tb.Categorical(("赤", "青", "緑", "白")), "calls": tb.Poisson()}
KINDS = np.array(["ß", "日本", "ß", "日本", "ß", "naïve"])

MODELS = {
    "plain": lambda: tb.NaiveBayes().fit(FRAME, KINDS),
    "columns and unicode": lambda: tb.NaiveBayes(COLUMNS).fit(FRAME, KINDS),
    "priors": lambda: tb.NaiveBayes(
        COLUMNS,
        estimate="map",
        prior=[tb.Dirichlet([2.0, 2.0, 3.0, 2.0]), tb.Gamma(2, 1), tb.NormalInverseGamma(0, 1, 2, 1)],
        class_prior=tb.Dirichlet([1.0, 2.0, 3.0]),
    ).fit(FRAME, KINDS),
    "prior by column": lambda: tb.NaiveBayes(COLUMNS, prior={"calls": tb.Gamma(2, 1)}).fit(FRAME, KINDS),
    "class prior": lambda: tb.NaiveBayes(class_prior={"ß": 0.5, "日本": 0.25, "naïve": 0.25}).fit(FRAME, KINDS),
    "class prior as an array": lambda: tb.NaiveBayes(class_prior=np.array([0.5, 0.25, 0.25])).fit(FRAME, KINDS),
    "a rule": lambda: tb.NaiveBayes({"色": tb.Categorical()}, prior=tb.BDeu(4.0), unseen="smooth").fit(FRAME, KINDS),
    "target by name": lambda: tb.NaiveBayes().fit(FRAME.assign(kind=KINDS), "kind"),
    "booleans": lambda: tb.NaiveBayes(class_prior={True: 0.3, False: 0.7}).fit(FRAME, np.array([True, False] * 3)),
    "floats": lambda: tb.NaiveBayes().fit(FRAME, np.array([0.0, 1.0] * 3)),
    "objects": lambda: tb.NaiveBayes().fit(FRAME, np.array(["a", "b"] * 3, dtype=object)),
    "positions": lambda: tb.NaiveBayes({(0, 2): tb.Gaussian()}).fit(FRAME, KINDS),
    "declared classes": lambda: tb.NaiveBayes().partial_fit(FRAME, KINDS, classes=[*set(KINDS), "later"]),
}


def through_file(model, path):
    model.save(path)
    return tb.load(path)


def through_joblib(model, path):
    joblib.dump(model, path)
    return joblib.load(path)


WAYS = {
    "file": through_file,
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "joblib": through_joblib,
}


def same_parameters(first, second):
    """Whether parameters mean the same: a list comes back from a file as a tuple."""
    return all(str(np.asarray(first[n], dtype=object)) == str(np.asarray(second[n], dtype=object)) for n in first)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_the_same(name, way, tmp_path):
    model = MODELS[name]()
    loaded = WAYS[way](model, tmp_path / "model.tally")
    assert type(loaded) is tb.NaiveBayes
    assert loaded.tally_ == model.tally_
    assert same_parameters(model.get_params(), loaded.get_params())
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()
    for attribute in ("feature_names_in_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(loaded, attribute, None), getattr(model, attribute, None))
    np.testing.assert_array_equal(loaded.predict_joint_log_proba(FRAME), model.predict_joint_log_proba(FRAME))
    assert loaded.predict(FRAME).tolist() == model.predict(FRAME).tolist()
    assert (loaded + model).tally_ == (model + model).tally_  # shards merge after traveling
    with pytest.raises(ValueError, match="calls"):
        loaded.predict(FRAME[["größe", "色"]])


def test_a_loaded_model_goes_on_learning(tmp_path):
    loaded = through_file(tb.NaiveBayes(COLUMNS).fit(FRAME[:3], KINDS[:3]), tmp_path / "half.tally")
    loaded.partial_fit(FRAME[3:], KINDS[3:])
    assert loaded.tally_.isclose(tb.NaiveBayes(COLUMNS).fit(FRAME, KINDS).tally_)


def test_sparse_blocks_travel(tmp_path):
    words = sparse.csr_array(np.random.default_rng(0).poisson(1, (6, 9)))
    for X in (words, {"words": words, "length": np.arange(6.0)}):
        model = tb.NaiveBayes().fit(X, KINDS)
        loaded = through_file(model, tmp_path / "words.tally")
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "model.tally"
    tb.NaiveBayes().fit(FRAME, KINDS).save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError):
        tb.load(path)


def test_clone_keeps_parameters_and_forgets_the_data():
    model = MODELS["priors"]()
    copy = clone(model)
    assert same_parameters(model.get_params(), copy.get_params())
    assert not hasattr(copy, "tally_")
    np.testing.assert_array_equal(copy.fit(FRAME, KINDS).predict_proba(FRAME), model.predict_proba(FRAME))
    assert repr(clone(tb.NaiveBayes(tb.Bernoulli()))) == "NaiveBayes(columns=Bernoulli())"
