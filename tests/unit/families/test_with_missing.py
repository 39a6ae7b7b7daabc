"""Absence as a value: against a column of flags that somebody made by hand, and all the laws of counting."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError

FAMILIES = [
    tb.Gaussian(),
    tb.LogNormal(),
    tb.Poisson(),
    tb.Bernoulli(),
    tb.Binned((None, 1, 2, None)),
    tb.Categorical(),
    tb.TiedGaussian(),
]


def draw(n=120, seed=0, family=None):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.poisson(1 + y).clip(0, 1 if family == tb.Bernoulli() else None) + (family == tb.LogNormal())
    x = np.where(rng.random(n) < np.where(y, 0.5, 0.1), np.nan, x)
    word = np.where(rng.random(n) < 0.3 + 0.3 * y, None, rng.choice(["a", "b"], n))
    return pd.DataFrame({"x": x, "word": word, "z": rng.normal(y)}), y


def both(family):
    return {"x": tb.WithMissing(family), "word": tb.WithMissing(tb.Categorical()), "z": tb.Gaussian()}


def by_hand(frame):
    flags = {f"has {name}": frame[name].notna().to_numpy().astype(float) for name in ("x", "word")}
    return frame.assign(**flags)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
def test_it_is_a_flag_beside_the_column(family, estimate):
    frame, y = draw(family=family)
    model = tb.NaiveBayes(both(family), estimate=estimate).fit(frame, y)
    flags = dict.fromkeys(["has x", "has word"], tb.Bernoulli())
    plain = {"x": family, "word": tb.Categorical(), "z": tb.Gaussian()}
    twin = tb.NaiveBayes(plain | flags, estimate=estimate).fit(by_hand(frame), y)
    np.testing.assert_allclose(model.predict_proba(frame), twin.predict_proba(by_hand(frame)), rtol=1e-12)
    np.testing.assert_allclose(model.score_samples(frame), twin.score_samples(by_hand(frame)), rtol=1e-12)
    assert model.columns_ == both(family)
    assert model.n_parameters_ == twin.n_parameters_
    if estimate == "bayes":
        assert model.log_evidence() == pytest.approx(twin.log_evidence(), rel=1e-12)
    if estimate == "mle":  # rows that nothing but themselves made possible
        return
    left = [tb.leave_one_out(*one).log_loss.value for one in ((model, frame, y), (twin, by_hand(frame), y))]
    assert left[0] == pytest.approx(left[1], rel=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(FAMILIES))
def test_the_laws_of_counting(seed, family):
    rng = np.random.default_rng(seed)
    frame, y = draw(30, seed, family)
    y[:2] = [0, 1]
    columns, cut = both(family), int(rng.integers(2, 29))

    def fit(part, weight=None):
        return tb.NaiveBayes(columns).fit(frame.iloc[part], y[part], weight)

    every = np.arange(30)
    whole, order = fit(every), rng.permutation(30)
    parts = every[:cut], every[cut:]
    assert fit(order).tally_.isclose(whole.tally_)
    assert fit(parts[0]).partial_fit(frame[cut:], y[cut:]).tally_.isclose(whole.tally_)
    assert (fit(parts[0]) + fit(parts[1])).tally_.isclose(whole.tally_)
    assert whole.reestimate().forget(frame[cut:], y[cut:]).tally_.isclose(fit(parts[0]).tally_)
    times = rng.integers(0, 3, 30)
    if times.any():
        assert fit(every, times).tally_.isclose(fit(np.repeat(every, times)).tally_)


def test_files_copies_and_arrays(tmp_path):
    frame, y = draw()
    model = tb.NaiveBayes(both(tb.Gaussian())).fit(frame, y)
    model.save(tmp_path / "model")
    for back in (tb.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert back.columns == model.columns
        assert back.columns_ == model.columns_
        np.testing.assert_array_equal(back.predict_proba(frame), model.predict_proba(frame))
    X = frame[["x", "z"]].to_numpy()
    array = tb.NaiveBayes({0: tb.WithMissing(tb.Gaussian()), 1: "auto"}).fit(X, y)
    named = tb.NaiveBayes({"x": tb.WithMissing(tb.Gaussian()), "z": "auto"}).fit(frame[["x", "z"]], y)
    np.testing.assert_array_equal(array.predict_proba(X), named.predict_proba(frame[["x", "z"]]))
    assert array.predict(X).tolist() == named.predict(frame[["x", "z"]]).tolist()
    assert array.columns_ == {0: tb.WithMissing(tb.Gaussian()), 1: tb.Gaussian()}
    rows = [{k: v for k, v in row.items() if not pd.isna(v)} for row in frame.to_dict("records")]
    dicts = tb.NaiveBayes(both(tb.Gaussian())).fit(rows, y)  # an absent key is an absent cell
    np.testing.assert_array_equal(dicts.predict_proba(rows), model.predict_proba(frame))
    np.testing.assert_array_equal(
        dicts.predict_proba([{"z": None}]), model.predict_proba(frame[:1].assign(x=np.nan, word=None, z=np.nan))
    )
    every = tb.NaiveBayes(tb.WithMissing(tb.Gaussian())).fit(X, y)
    assert every.columns_ == dict.fromkeys([0, 1], tb.WithMissing(tb.Gaussian()))


def test_what_is_unknown_is_not_absent():
    frame, y = draw()
    model = tb.NaiveBayes(both(tb.Gaussian())).fit(frame, y)
    without = tb.NaiveBayes({name: family for name, family in both(tb.Gaussian()).items() if name != "word"}).fit(
        frame, y
    )
    strange = frame.assign(word=np.where(np.arange(120) % 2, "never seen", frame["word"]))
    odd = np.arange(120) % 2 == 1
    found = model.predict_proba(strange)
    np.testing.assert_allclose(found[odd], without.predict_proba(strange)[odd], rtol=1e-12)
    np.testing.assert_array_equal(found[~odd], model.predict_proba(frame)[~odd])
    absent = model.predict_proba(strange.assign(word=None))
    assert np.abs(absent[odd] - found[odd]).max() > 0.05
    assert model.impute(strange)["word"][1] == "never seen"


def test_samples_have_absences():
    frame, y = draw()
    model = tb.NaiveBayes(both(tb.Gaussian())).fit(frame, y)
    drawn, labels = model.sample(4000, random_state=0)
    assert set(drawn) == {"x", "word", "z"}
    for label in (0, 1):
        lacks = np.isnan(drawn["x"][labels == label])
        n, seen = np.count_nonzero(y == label), frame["x"][y == label].isna().sum()
        share = (seen + 1) / (n + 2)  # by the posterior mean, add-one
        assert lacks.mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / len(lacks)))
    assert 0.3 < pd.isna(drawn["word"]).mean() < 0.7
    assert not np.isnan(drawn["z"]).any()
    filled = model.impute(frame)
    assert set(filled) == {"x", "word", "z"}
    assert not np.isnan(filled["x"]).any()
    assert set(model.impute(frame, "distribution")) == {"x", "word"}


def test_every_answer_is_given():
    frame, y = draw()
    model = tb.NaiveBayes(both(tb.Gaussian())).fit(frame, y)
    assert "x (present)" in model.explain(frame[:1]).columns
    assert "x (present)" in model.show_work(frame[:1])
    assert ("x (present)", "word (present)") in model.prior_
    assert model.reestimate(prior=1).prior_[("x (present)", "word (present)")] == tb.Beta(1, 1)
    model.predict_proba_interval(frame[:5], random_state=0)
    model.predict_set(frame[:5])
    tb.cross_validate(model, frame, y)
    tb.evaluate(model, frame, y)
    again = model.reestimate(estimate="map", columns=both(tb.Gaussian()))
    assert again.columns_ == model.columns_


@pytest.mark.slow
def test_mixtures_and_sequences():
    frame, y = draw(200)
    mixture = tb.Mixture(2, both(tb.Gaussian()), random_state=0).fit(frame)
    assert mixture.columns_ == both(tb.Gaussian())
    assert set(mixture.sample(5)[0]) == {"x", "word", "z"}
    chain = tb.HiddenMarkovModel(columns=both(tb.Gaussian())).fit([frame], [y])
    assert chain.columns_ == both(tb.Gaussian())
    plain = {"x": tb.Gaussian(), "word": tb.Categorical(), "z": tb.Gaussian()}
    twin = tb.HiddenMarkovModel(columns=plain | dict.fromkeys(["has x", "has word"], tb.Bernoulli()))
    twin.fit([by_hand(frame)], [y])
    np.testing.assert_allclose(chain.predict_proba([frame])[0], twin.predict_proba([by_hand(frame)])[0], rtol=1e-9)
    assert set(chain.sample(5)[0][0]) == {"x", "word", "z"}
    assert set(chain.impute([frame])[0]) == {"x", "word", "z"}
    strange = frame.assign(word="never seen")
    without = tb.HiddenMarkovModel(columns={k: v for k, v in both(tb.Gaussian()).items() if k != "word"})
    expected = without.fit([frame], [y]).predict_proba([strange])[0]
    missing = chain.reestimate(unseen="missing")
    np.testing.assert_allclose(missing.predict_proba([strange])[0], expected, rtol=1e-9)


@pytest.mark.slow
def test_suggest_chooses_it_by_evidence():
    frame, y = draw(400)
    rng = np.random.default_rng(1)
    frame["by chance"] = np.where(rng.random(400) < 0.3, np.nan, rng.normal(y))
    frame["flag"] = np.where(rng.random(400) < 0.2 + 0.5 * y, "yes", None)
    model = tb.NaiveBayes("suggest").fit(frame, y)
    with_missing = {name for name, family in model.columns_.items() if isinstance(family, tb.WithMissing)}
    assert with_missing == {"x", "word", "flag"}
    plain = tb.NaiveBayes({name: family.present_family or family for name, family in model.columns_.items()}).fit(
        frame, y
    )
    assert model.score(frame, y) > plain.score(frame, y)
    found = tb.suggest_families(frame, y)
    assert found.columns == model.columns_
    assert "WithMissing(" in repr(found)
    there = tb.fit_distribution(frame["x"].notna().to_numpy().astype(float), tb.Bernoulli(), group=y).log_evidence(
        tb.Beta(1, 1)
    )
    alone = tb.fit_distribution(frame["x"].notna().to_numpy().astype(float), tb.Bernoulli()).log_evidence(tb.Beta(1, 1))
    assert found.details["x"].absence == pytest.approx((np.sum(there) - alone) / np.log(2), rel=1e-10)
    assert not isinstance(tb.Mixture(2, "suggest", random_state=0).fit(frame).columns_["x"], tb.WithMissing)


@pytest.mark.parametrize("family", [tb.Gaussian, "auto", None, tb.MultivariateGaussian(), tb.WithMissing(tb.Poisson())])
def test_families_that_it_does_not_take(family):
    with pytest.raises(DataError, match="the family of WithMissing"):
        tb.WithMissing(family)


def test_refusals():
    frame, y = draw()
    with pytest.raises(DataError, match="which count two columns for it"):
        tb.WithMissing(tb.Gaussian()).collect(np.ones((3, 1)))
    with pytest.raises(DataError, match=r"beside a column 'x \(present\)'"):
        tb.NaiveBayes(both(tb.Gaussian())).fit(frame.assign(**{"x (present)": 1.0}), y)
    with pytest.raises(DataError, match="a block of columns"):
        tb.NaiveBayes({"b": tb.WithMissing(tb.Gaussian())}).fit({"b": np.ones((120, 2))}, y)
    with pytest.raises(DataError, match="found inf in row 0, column 'x'"):
        tb.NaiveBayes(both(tb.Gaussian())).fit(frame.assign(x=np.inf), y)


def test_cells_out_of_range_are_not_absent():
    frame, y = draw(family=tb.LogNormal())
    columns = {"x": tb.WithMissing(tb.LogNormal()), "z": tb.Gaussian()}
    model, without = (tb.NaiveBayes(one).fit(frame, y) for one in (columns, {"z": tb.Gaussian()}))
    strange = frame.assign(x=np.where(np.arange(120) % 4 == 0, -1.0, frame["x"]))
    with pytest.warns(UserWarning, match="'x'"):
        found = model.predict_proba(strange)
    odd = np.arange(120) % 4 == 0
    np.testing.assert_allclose(found[odd], without.predict_proba(frame)[odd], rtol=1e-12)
    np.testing.assert_array_equal(found[~odd], model.predict_proba(frame)[~odd])
    chain = tb.HiddenMarkovModel(columns=columns).fit([frame], [y])
    with pytest.warns(UserWarning, match="'x'"):
        steps = chain.predict_proba([strange])[0]
    assert np.isfinite(steps).all()
