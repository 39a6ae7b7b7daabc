"""What a drop-in has that hmmlearn's model has not: missing steps, known states, it forgets, adds, and has `model_`."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

theirs = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn, which these stand in for, is not installed")

import tallybayes as tb  # noqa: E402
import tallybayes.hmmlearn as ours  # noqa: E402

KINDS = ["CategoricalHMM", "GaussianHMM", "PoissonHMM"]
LENGTHS = [30, 50, 40]
PARAMETERS = ("startprob_", "transmat_", "emissionprob_", "means_", "covars_", "lambdas_")


def rows(kind, seed=0):
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.integers(0, 2, 120), rng.integers(1, 7, 120))[:120]
    if kind == "CategoricalHMM":
        return rng.integers(0, 3, 120)[:, None] + states[:, None], states
    if kind == "PoissonHMM":
        return rng.poisson(np.array([[1.0, 6.0], [5.0, 2.0]])[states]), states
    return np.array([[0.0, 3.0], [4.0, 1.0]])[states] + rng.normal(size=(120, 2)), states


def same(mine, its, rtol=1e-12):
    for name in PARAMETERS:
        assert hasattr(mine, name) == hasattr(its, name)
        if hasattr(its, name):
            np.testing.assert_allclose(getattr(mine, name), getattr(its, name), rtol=rtol, atol=1e-14, err_msg=name)


def fitted(kind, **options):
    X, _ = rows(kind)
    return getattr(ours, kind)(2, random_state=0, n_iter=4, **options).fit(X, LENGTHS)


# ---- Known states ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_known_states_are_counted(kind):
    X, states = rows(kind)
    options = {"covars_prior": 0.0} if kind == "GaussianHMM" else {}
    mine = getattr(ours, kind)(2, **options).fit(X, LENGTHS, states=states)
    column = X[:, 0] if kind == "CategoricalHMM" else X
    family = {"CategoricalHMM": tb.Categorical(), "GaussianHMM": tb.Gaussian(), "PoissonHMM": tb.Poisson()}[kind]
    model = tb.HiddenMarkovModel(columns=family, estimate="mle").fit(column, states, LENGTHS)
    np.testing.assert_allclose(mine.startprob_, model.start_)
    np.testing.assert_allclose(mine.transmat_, model.transition_)
    assert mine.score(X, LENGTHS) == pytest.approx(model.log_likelihood(column, lengths=LENGTHS), rel=1e-12)
    assert mine.model_.tally_.soft is False
    assert mine.model_.log_likelihood(X, lengths=LENGTHS) == pytest.approx(mine.score(X, LENGTHS), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_forgotten_was_never_counted(kind):
    X, states = rows(kind)
    mine = getattr(ours, kind)(2).fit(X, LENGTHS, states=states)
    assert mine.forget(X[80:], states[80:], [40]) is mine
    less = getattr(ours, kind)(2, **({"n_features": mine.n_features} if kind == "CategoricalHMM" else {}))
    same(mine, less.fit(X[:80], LENGTHS[:2], states=states[:80]), rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_known_states_add_up(kind):
    X, states = rows(kind)
    options = {"n_features": 4} if kind == "CategoricalHMM" else {}
    make = getattr(ours, kind)
    parts = [make(2, **options).fit(X[:80], LENGTHS[:2], states=states[:80])]
    parts.append(make(2, **options).fit(X[80:], states=states[80:]))
    total = sum(parts)
    same(total, make(2, **options).fit(X, LENGTHS, states=states))
    same(total.forget(X[80:], states[80:]), parts[0])


def test_states_are_checked_and_what_fails_changes_nothing():
    X, states = rows("GaussianHMM")
    model = ours.GaussianHMM(2).fit(X, LENGTHS, states=states)
    before = model.means_.copy()
    with pytest.raises(tb.LabelError, match="run from -1 to 1"):
        model.fit(X, LENGTHS, states=np.where(np.arange(120) < 3, -1, states))
    with pytest.raises(tb.DataError, match="whole numbers"):
        model.fit(X, LENGTHS, states=states[:5])
    with pytest.raises(tb.DataError, match="no step in state 2"):
        ours.GaussianHMM(3).fit(X, LENGTHS, states=states)
    with pytest.raises(tb.StatisticsError, match="cannot forget"):
        model.forget(np.concatenate([X, X]), np.concatenate([states, states]))
    with pytest.raises(ValueError, match="Unexpected number of dimensions"):
        model.forget(X[:, :1], states)
    np.testing.assert_array_equal(model.means_, before)
    X, states = rows("CategoricalHMM")
    with pytest.raises(ValueError, match="Largest symbol is 9"):
        ours.CategoricalHMM(2).fit(X, states=states).forget([[9]], [0])
    with pytest.raises(tb.NotForgettableError, match="not counted from known states"):
        fitted("CategoricalHMM").forget(X, states)


# ---- Expected counts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_em_may_be_taken_in_parts(kind):
    X, _ = rows(kind)
    start = fitted(kind)
    parts = []
    for some, lengths in ((X[:80], LENGTHS[:2]), (X[80:], LENGTHS[2:]), (X, LENGTHS)):
        one = getattr(ours, kind)(2, init_params="", n_iter=1)
        for name in ("startprob_", "transmat_", "emissionprob_", "means_", "lambdas_"):
            if hasattr(start, name):
                setattr(one, name, getattr(start, name))
        if kind == "GaussianHMM":
            one.covars_ = start.covars_[:, [0, 1], [0, 1]]
        elif kind == "CategoricalHMM":
            one.n_features = start.n_features
        parts.append(one.fit(some, lengths))
    same(parts[0] + parts[1], parts[2])


def test_what_has_no_counts_does_not_add():
    given = ours.PoissonHMM(2)
    given.startprob_, given.transmat_, given.lambdas_ = [0.5, 0.5], [[0.5, 0.5], [0.1, 0.9]], [[1.0], [3.0]]
    with pytest.raises(tb.NoCountsError, match="Fit both"):
        given + given
    with pytest.raises(tb.StatisticsError, match="expected as many"):
        fitted("PoissonHMM") + ours.PoissonHMM(3, random_state=0).fit(rows("PoissonHMM")[0])
    with pytest.raises(tb.StatisticsError, match="numbers of levels differ"):
        fitted("CategoricalHMM") + fitted("CategoricalHMM", n_features=9)
    with pytest.raises(TypeError):
        fitted("PoissonHMM") + fitted("GaussianHMM")


# ---- Missing cells --------------------------------------------------------------------------------------------------


def with_holes(kind):
    X = rows(kind)[0].astype(float)
    X[[3, 4, 60, 119]] = np.nan
    return X


@pytest.mark.parametrize("kind", KINDS)
def test_missing_steps_are_summed_out(kind):
    X, mine = with_holes(kind), fitted(kind)
    given = ours_as_given(mine)
    column = X[:, 0] if kind == "CategoricalHMM" else X
    assert mine.score(X, LENGTHS) == pytest.approx(given.log_likelihood(column, lengths=LENGTHS), rel=1e-10)
    np.testing.assert_allclose(
        mine.predict_proba(X, LENGTHS), np.concatenate(given.predict_proba(column, LENGTHS)), atol=1e-10
    )
    log_prob, path = mine.decode(X, LENGTHS)
    best = given.log_joint(column, np.concatenate(given.predict(column, LENGTHS)), LENGTHS).sum()  # several may be
    assert log_prob == pytest.approx(best, rel=1e-10)
    assert log_prob == pytest.approx(given.log_joint(column, path, LENGTHS).sum(), rel=1e-10)


def ours_as_given(mine):
    """A model of this package from the attributes, written down once more."""
    moves = mine.transmat_ / mine.transmat_.sum(axis=1, keepdims=True)
    start = mine.startprob_ / mine.startprob_.sum()
    if hasattr(mine, "emissionprob_"):
        return tb.HiddenMarkovModel.from_tables(start, moves, mine.emissionprob_, unseen="missing")
    if hasattr(mine, "lambdas_"):
        emission = [{"rate": rate} for rate in mine.lambdas_]
    else:
        emission = [{"mean": m, "covariance": c} for m, c in zip(mine.means_, mine.covars_, strict=True)]
    return tb.HiddenMarkovModel.from_tables(start, moves, {(0, 1): emission}, states=[0, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_missing_steps_are_learned_around(kind):
    X, start = with_holes(kind), fitted(kind)
    climbed = getattr(ours, kind)(2, init_params="", n_iter=6, tol=0)
    for name in ("startprob_", "transmat_", "emissionprob_", "means_", "lambdas_"):
        if hasattr(start, name):
            setattr(climbed, name, getattr(start, name))
    if kind == "GaussianHMM":
        climbed.covars_, climbed.covars_prior = start.covars_[:, [0, 1], [0, 1]], 0.0
    initial = climbed.model_  # as it was given
    climbed.fit(X, LENGTHS)
    assert np.all(np.diff(climbed.monitor_.history) > 0)
    column = X[:, 0] if kind == "CategoricalHMM" else X
    model = tb.HiddenMarkovModel(2, initial.columns, estimate="mle", max_iter=7, tol=1e-300)
    with pytest.warns(UserWarning, match="did not converge"):
        model.fit(column, lengths=LENGTHS, initial=initial)
    assert climbed.monitor_.history == pytest.approx(model.history_[:6], rel=1e-10)


@pytest.mark.parametrize("covariance_type", ["spherical", "diag"])
def test_missing_cells_are_left_out_one_by_one(covariance_type):
    X = rows("GaussianHMM")[0]
    X[5, 0], X[7, 1] = np.nan, np.nan
    model = ours.GaussianHMM(2, covariance_type, n_iter=5, tol=0, random_state=0, covars_prior=0.0).fit(X)
    assert np.all(np.diff(model.monitor_.history) > 0)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_parts_of_steps_are_asked_about_but_not_learned_from(covariance_type):
    X = rows("GaussianHMM")[0]
    model = ours.GaussianHMM(2, covariance_type, random_state=0).fit(X)
    X[5, 0] = np.nan
    assert model.score(X) == pytest.approx(ours_as_given(model).log_likelihood(X), rel=1e-10)
    with pytest.raises(tb.DataError, match="step 5 has some missing cells"):
        ours.GaussianHMM(2, covariance_type, random_state=0).fit(X)
    X[5] = np.nan
    assert np.isfinite(ours.GaussianHMM(2, covariance_type, random_state=0).fit(X).means_).all()


def test_frames_are_read():
    X = rows("GaussianHMM")[0]
    frame = pd.DataFrame(X, columns=["a", "b"])
    same(ours.GaussianHMM(2, random_state=0).fit(frame, LENGTHS), ours.GaussianHMM(2, random_state=0).fit(X, LENGTHS))


# ---- The model inside -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_inside_answers_the_same(kind):
    X, mine = rows(kind)[0], fitted(kind, **({"covars_prior": 0.0} if kind == "GaussianHMM" else {}))
    model = mine.model_
    assert isinstance(model, tb.HiddenMarkovModel)
    assert model.log_likelihood(X, lengths=LENGTHS) == pytest.approx(mine.score(X, LENGTHS), rel=1e-10)
    np.testing.assert_array_equal(np.concatenate(model.predict(X, LENGTHS)), mine.predict(X, LENGTHS))
    assert np.isfinite(model.reestimate(estimate="bayes").log_likelihood(X, lengths=LENGTHS))
    assert model.tally_.statistics[0].table.sum() == pytest.approx(len(LENGTHS))


@pytest.mark.parametrize("covariance_type", ["spherical", "diag", "full", "tied"])
def test_the_model_inside_has_their_covariances(covariance_type):
    X = rows("GaussianHMM")[0]
    model = ours.GaussianHMM(2, covariance_type, random_state=0, n_iter=3, covars_prior=0.0).fit(X)
    assert model.model_.log_likelihood(X) == pytest.approx(model.score(X), rel=1e-10)
    np.testing.assert_allclose(model.model_.covariances_, model.covars_, rtol=1e-10, atol=1e-12)
    assert model.covars_.shape == (2, 2, 2)


def test_parameters_that_were_changed_are_the_models():
    X, mine = rows("GaussianHMM")[0], fitted("GaussianHMM")
    mine.means_ *= 2
    with pytest.raises(tb.NoCountsError):
        mine.model_.log_evidence()
    assert mine.model_.log_likelihood(X) == pytest.approx(mine.score(X), rel=1e-12)
    kept = fitted("GaussianHMM", params="st")
    assert kept.model_.log_likelihood(X) == pytest.approx(kept.score(X), rel=1e-12)


# ---- Where hmmlearn is at its wits' end -----------------------------------------------------------------------------


def test_a_state_that_no_step_left_keeps_its_transitions():
    X = np.array([[0.0], [0.1], [9.0]])
    states = [0, 0, 1]
    assert np.isfinite(ours.GaussianHMM(2).fit(X, states=states).score(X))
    model, other = (home.CategoricalHMM(2, init_params="", n_features=2, n_iter=1) for home in (ours, theirs))
    for one in (model, other):
        one.startprob_, one.transmat_ = np.array([1.0, 0.0]), np.array([[0.5, 0.5], [0.4, 0.6]])
        one.emissionprob_ = np.array([[1.0, 0.0], [0.0, 1.0]])
        one.fit([[0], [0], [1]])
    np.testing.assert_array_equal(model.transmat_, [[0.5, 0.5], [0.4, 0.6]])
    np.testing.assert_array_equal(other.transmat_[1], [0.0, 0.0])


def test_a_state_that_no_step_was_in_keeps_its_emissions():
    for kind, X in (("CategoricalHMM", [[0], [1]]), ("GaussianHMM", [[0.0], [1.0]]), ("PoissonHMM", [[0], [1]])):
        model = getattr(ours, kind)(2, init_params="", n_iter=1)
        model.startprob_, model.transmat_ = np.array([1.0, 0.0]), np.eye(2)
        model.emissionprob_ = np.array([[0.5, 0.5], [0.2, 0.8]])
        model.means_, model.lambdas_, model.n_features = np.array([[0.0], [3.0]]), np.array([[1.0], [3.0]]), 1
        if kind == "GaussianHMM":
            model.covars_ = np.array([[1.0], [2.0]])
        elif kind == "CategoricalHMM":
            model.n_features = 2
        model.fit(X)
        kept = {"CategoricalHMM": "emissionprob_", "GaussianHMM": "means_", "PoissonHMM": "lambdas_"}[kind]
        assert getattr(model, kept)[1].tolist() in ([0.2, 0.8], [3.0])
        assert np.isfinite(model.score(X))


def test_an_impossible_sequence_is_named():
    model = ours.CategoricalHMM(2, init_params="", n_features=2)
    model.startprob_, model.transmat_ = np.array([1.0, 0.0]), np.eye(2)
    model.emissionprob_ = np.array([[1.0, 0.0], [0.5, 0.5]])
    X, lengths = [[0], [0], [1]], [1, 2]
    assert model.score(X, lengths) == -np.inf
    assert model.predict(X, lengths).tolist() == [0, -1, -1]
    assert model.decode(X, lengths, "map")[1].tolist() == [0, -1, -1]
    np.testing.assert_array_equal(model.predict_proba(X, lengths), [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    with pytest.raises(tb.DataError, match="sequence 1 is impossible"):
        model.fit(X, lengths)


@pytest.mark.parametrize("wrong", [0.5, -1.0])
def test_counts_that_are_none_are_named(wrong):
    X = rows("PoissonHMM")[0].astype(float)
    model = fitted("PoissonHMM")
    X[5, 1] = wrong
    assert model.score(X) == theirs_of(model).score(X) == -np.inf
    with pytest.raises(tb.DataError, match=f"step 5 has {wrong} in column 1"):
        ours.PoissonHMM(2, random_state=0).fit(X)


def theirs_of(model):
    other = theirs.PoissonHMM(2)
    other.startprob_, other.transmat_, other.lambdas_ = model.startprob_, model.transmat_, model.lambdas_
    return other


def test_covariances_about_means_that_are_held():
    # hmmlearn counts no weights without "m" among params, and divides by next to nothing.
    X = rows("GaussianHMM")[0]
    model = ours.GaussianHMM(1, params="stc", init_params="stc", covars_prior=0.0, n_iter=2)
    model.means_ = np.array([[1.0, 1.0]])
    model.fit(X)
    np.testing.assert_allclose(model.covars_[0].diagonal(), ((X - 1) ** 2).mean(axis=0), rtol=1e-12)


def test_nothing_underflows():
    X = np.concatenate([np.zeros(20), [1e4], np.zeros(20)])[:, None] + np.arange(41)[:, None] % 3
    model = ours.GaussianHMM(2, init_params="", n_iter=3)
    model.startprob_, model.transmat_ = [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]
    model.means_, model.covars_ = [[0.0], [2.0]], [[1.0], [1.0]]
    assert np.isfinite(model.score(X))
    assert np.isfinite(model.fit(X).means_).all()
    model = ours.GaussianHMM(2, implementation="scaling", init_params="", n_iter=3)
    model.startprob_, model.transmat_ = [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]
    model.means_, model.covars_ = [[0.0], [2.0]], [[1.0], [1.0]]
    for method in (model.fit, model.score):
        with pytest.raises(ValueError, match="underflow at step 20; consider using implementation='log'"):  # as theirs
            method(X)


def test_hmmlearns_names_may_be_replaced(monkeypatch):
    hmm = pytest.importorskip("hmmlearn.hmm")
    kinds = {name: getattr(ours, name) for name in ours.__all__}
    for name, kind in kinds.items():
        monkeypatch.setattr(hmm, name, kind)
    X = np.random.default_rng(0).integers(1, 5, (60, 1))
    for kind in kinds.values():
        model = kind(2, random_state=0, n_iter=2).fit(X if kind is not ours.MultinomialHMM else np.hstack([X, 5 - X]))
        assert type(copy.deepcopy(model)) is type(pickle.loads(pickle.dumps(model))) is kind
    model = ours.GaussianHMM(2)
    model.n_features = 1
    model.means_, model.covars_ = np.zeros((2, 1)), np.ones((2, 1))
    assert model.covars_.shape == (2, 1, 1)


class TestMultinomial:
    X = np.array([[4, 1], [5, 0], [4, 1], [0, 5], [1, 4], [0, 5], [5, 0], [4, 1]])
    STATES = np.array([0, 0, 0, 1, 1, 1, 0, 0])

    def test_the_fit_is_hmmlearns(self):
        theirs = pytest.importorskip("hmmlearn.hmm").MultinomialHMM(2, random_state=3, n_iter=20, tol=0).fit(self.X)
        model = ours.MultinomialHMM(2, random_state=3, n_iter=20, tol=0).fit(self.X)
        np.testing.assert_allclose(model.emissionprob_, theirs.emissionprob_, atol=1e-9)
        np.testing.assert_allclose(model.transmat_, theirs.transmat_, atol=1e-9)
        assert model.score(self.X) == pytest.approx(theirs.score(self.X))
        np.testing.assert_array_equal(model.predict(self.X), theirs.predict(self.X))

    def test_known_states_are_counted_and_forgotten(self):
        model = ours.MultinomialHMM(2).fit(self.X, states=self.STATES, lengths=[4, 4])
        np.testing.assert_allclose(model.emissionprob_[1], [1 / 15, 14 / 15])
        first = ours.MultinomialHMM(2).fit(self.X[:4], states=self.STATES[:4])
        model.forget(self.X[4:], self.STATES[4:])
        np.testing.assert_allclose(model.emissionprob_, first.emissionprob_)
        np.testing.assert_allclose(model.transmat_[0], first.transmat_[0])

    def test_the_model_inside_agrees(self):
        model = ours.MultinomialHMM(2, random_state=3, n_iter=5).fit(self.X)
        np.testing.assert_allclose(model.model_.predict_proba([self.X])[0], model.predict_proba(self.X), atol=1e-9)

    def test_missing_steps_and_other_totals(self):
        X = np.where(np.arange(8)[:, None] == 3, np.nan, self.X)
        model = ours.MultinomialHMM(2, random_state=0).fit(X)
        assert model.predict_proba(X).shape == (8, 2)
        assert np.isfinite(model.score(2 * self.X))

    @pytest.mark.parametrize("wrong", [[[1.5, 3.5]], [[-1, 6]]])
    def test_other_numbers_are_rejected(self, wrong):
        with pytest.raises(ValueError, match="nonnegative integers"):
            ours.MultinomialHMM(2).fit(wrong)


# ---- Mixtures -------------------------------------------------------------------------------------------------------


def heaps():
    rng = np.random.default_rng(4)
    states = np.repeat(rng.integers(0, 2, 400), rng.integers(1, 7, 400))[:400]
    means = np.array([[[0.0, 0.0], [8.0, 8.0]], [[4.0, 0.0], [0.0, 4.0]]])
    return means[states, rng.integers(0, 2, 400)] + rng.normal(size=(400, 2)), states


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("n_mix", [1, 2])
@pytest.mark.parametrize("covariance_type", ["spherical", "diag", "full", "tied"])
def test_the_model_inside_is_a_mixture(covariance_type, n_mix):
    X, _ = heaps()
    mine = ours.GMMHMM(2, n_mix, covariance_type=covariance_type, random_state=0, n_iter=1).fit(X, [150, 250])
    given = ours.GMMHMM(2, n_mix, covariance_type=covariance_type)
    for name in ("startprob_", "transmat_", "weights_", "means_", "covars_"):
        setattr(given, name, getattr(mine, name))
    assert given.model_.log_likelihood(X) == pytest.approx(mine.score(X), rel=1e-10)
    np.testing.assert_array_equal(given.model_.predict(X)[0], mine.predict(X))
    counted = mine.model_  # its covariances are about the means of this step, theirs about those before
    if covariance_type == "tied":
        assert counted.log_likelihood(X) == pytest.approx(mine.score(X), rel=1e-10)
    else:
        np.testing.assert_allclose(counted.means_, mine.means_ if n_mix > 1 else mine.means_[:, 0], rtol=1e-12)
        assert counted.log_likelihood(X, lengths=[150, 250]) >= mine.score(X, [150, 250])
        assert counted.tally_.statistics[0].table.sum() == pytest.approx(2)


def test_mixtures_of_missing_steps_and_parts():
    X, states = heaps()
    mine = ours.GMMHMM(2, 2, random_state=0, n_iter=4).fit(X, [150, 250])
    X[7] = np.nan
    one = ours.GMMHMM(2, 2, random_state=0, n_iter=4).fit(X, [150, 250])
    np.testing.assert_allclose(one.means_, mine.means_, atol=0.1)
    assert one.predict(X)[7] in (0, 1)
    X[7, 0] = 1.0
    assert np.isfinite(one.score(X))
    with pytest.raises(tb.DataError, match="step 7 has some missing"):
        one.fit(X)
    with pytest.raises(tb.DataError, match="component of a time step within"):
        one.fit(X, states=states)
    with pytest.raises(tb.NotForgettableError):
        one.forget(X, states)


def test_a_step_of_em_of_mixtures_may_be_taken_in_parts():
    X, _ = heaps()
    start, parts = ours.GMMHMM(2, 2, covariance_type="full", random_state=0, n_iter=2).fit(X, [150, 250]), []
    for some, lengths in ((X[:150], [150]), (X[150:], [250]), (X, [150, 250])):
        one = ours.GMMHMM(2, 2, covariance_type="full", init_params="", n_iter=1)
        for name in ("startprob_", "transmat_", "weights_", "means_", "covars_"):
            setattr(one, name, getattr(start, name))
        parts.append(one.fit(some, lengths))
    total = sum(parts[:2])
    same(total, parts[2])
    np.testing.assert_allclose(total.weights_, parts[2].weights_, rtol=1e-12)
