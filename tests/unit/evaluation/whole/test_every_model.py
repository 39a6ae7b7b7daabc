"""Every function of insight takes every model: each answer beside brute force, each refusal with its reason."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

import tallybayes as tb
from tests.unit.evaluation.every_model import CASES

mpl.use("Agg")
NAMES = list(CASES)


@pytest.fixture(autouse=True)
def _close_pictures():
    yield
    plt.close("all")


def expected_scores(case, model, row):
    """What a model says of a row or sequence, by its public names alone."""
    data, _ = case.some([row])
    if case.kind in ("states", "steps"):
        return model.predict_proba(data)[0], model.score_samples(data)[0]
    if case.kind == "rows":
        return None, model.score_samples(data)[0]
    if isinstance(model, tb.BayesianNetwork):
        others = {name: column for name, column in data.items() if name != case.target}
        return model.predict_proba(data, case.target)[0], model.score_samples(others)[0]
    density = model.score_samples(data)[0] if hasattr(model, "score_samples") else None
    return np.exp(model.predict_log_proba(data)[0]), density


def check_row(case, found, row, model):
    """A row's held-out scores are those of the model that was fitted without it."""
    shares, density = expected_scores(case, model, row)
    if case.kind == "states":
        steps = np.cumsum([0, *map(len, case.data)])
        shown = np.exp(found.log_proba[steps[row] : steps[row + 1]])
        np.testing.assert_allclose(shown, shares, atol=1e-9)
        assert found.log_likelihood[row] == pytest.approx(density, abs=1e-9)
        return
    (place,) = np.flatnonzero(found.rows == row)
    if case.kind == "classes":
        np.testing.assert_allclose(np.exp(found.log_proba[place]), shares, atol=1e-9)
    if density is not None:
        assert found.log_density[place] == pytest.approx(density, abs=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", NAMES)
def test_folds_are_told_by_the_model_fitted_without_them(name):
    case = CASES[name]
    found = tb.cross_validate(case.model, case.data, case.target, folds=3)
    assert found.refitted == case.refitted
    assert ("refitted for every fold" in repr(found)) == case.refitted
    assert len(found.fold) == case.n
    assert found.loss.low <= found.loss.value <= found.loss.high
    for fold in range(3):
        model = case.fit(np.flatnonzero(found.fold != fold))
        for row in np.flatnonzero(found.fold == fold)[:4]:
            check_row(case, found, row, model)
    if hasattr(found, "by_fold"):
        by_fold = found.by_fold()
        loss = np.average(by_fold.iloc[:, -1], weights=by_fold["weight"])
        assert loss == pytest.approx(found.loss.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if CASES[name].refitted and name != "nearest mean"])
def test_default_priors_are_held_when_a_model_is_fitted_again(name):
    case = CASES[name]
    case = case._replace(model=clone(case.model).set_params(prior=None))
    found = tb.cross_validate(case.model, case.data, case.target, folds=3)
    held = clone(case.model).set_params(prior=found.model.prior_)
    model = case.fit(np.flatnonzero(found.fold != 1), held)
    for row in np.flatnonzero(found.fold == 1)[:4]:
        check_row(case, found, row, model)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rows_left_out_are_told_by_the_model_fitted_without_them(name):
    case = CASES[name]
    found = tb.leave_one_out(case.model, case.data, case.target)
    assert found.refitted == case.refitted
    for row in np.flatnonzero(found.fold >= 0)[::5]:
        check_row(case, found, row, case.fit(np.delete(np.arange(case.n), row)))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", NAMES)
def test_the_past_foretells_the_future(name):
    case = CASES[name]
    when = np.arange(case.n) if case.n < 10 else np.random.default_rng(0).permutation(case.n)
    found = tb.cross_validate(case.model, case.data, case.target, folds=2, order=when)
    held = np.flatnonzero(found.fold == 1)
    model = case.fit(np.flatnonzero(when < when[held].min()))
    check_row(case, found, held[0], model)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_candidates_are_what_each_is_alone(name):
    case = CASES[name]
    if isinstance(case.model, tb.NearestClassMean):
        candidates = {"metric": ["mahalanobis", "euclidean"]}
    else:
        candidates = {"estimate": ["bayes", "map"]}
    found = tb.cross_validate(case.model, case.data, case.target, folds=2, candidates=candidates)
    assert found.best.loss.value == min(result.loss.value for result in found)
    for result in found:
        alone = tb.cross_validate(
            case.model.__class__(**{**case.model.get_params(deep=False), **result.parameters}),
            case.data,
            case.target,
            folds=2,
        )
        assert result.loss.value == pytest.approx(alone.loss.value, rel=1e-9)
    assert found.excess_loss(found.best).value == 0
    assert len(found.to_frame()) == 2
    assert found.best.loss_name in repr(found)
    assert ("refitted for every fold" in repr(found)) == case.refitted


def test_unlabeled_rows_stay_in_every_training_set():
    case = CASES["naive Bayes, unlabeled"]
    found = tb.cross_validate(case.model, case.data, case.target, folds=3)
    unlabeled = np.array([label is None for label in case.target])
    assert (found.fold[unlabeled] == -1).all()
    assert (found.fold[~unlabeled] >= 0).all()
    assert len(found.codes) == (~unlabeled).sum()
    # but for those of a group that is held out: they would tell of it
    groups = np.arange(case.n) // 8
    grouped = tb.cross_validate(case.model, case.data, case.target, folds=2, groups=groups)
    held = np.flatnonzero(grouped.fold == 0)
    mine = np.isin(groups, groups[held])
    check_row(case, grouped, held[0], case.fit(np.flatnonzero(~mine)))


@pytest.mark.slow
def test_levels_and_classes_that_only_a_fold_shows_are_known_when_it_is_held_out():
    rows = {"y": ["a", "b"] * 10, "x": ["u", "v", "u", "v", "u"] * 4, "z": [0, 1, 1, 0] * 5}
    rows["x"][0] = "w"
    rows["y"][1] = "c"
    for missing, prior in (("available", None), ("em", None), ("em", {"x": tb.Dirichlet(np.ones(3))})):
        model = tb.BayesianNetwork({"x": ["y"], "z": ["y"]}, missing=missing, prior=prior)
        found = tb.leave_one_out(model, {**rows, "z": [None, *rows["z"][1:]]}, "y")
        assert found.refitted == (missing == "em")
        # p(w | y) = 1 / (n + 3) under add-one: nobody else has it, but it can be
        shares = np.bincount([["a", "b", "c"].index(label) for label in rows["y"][1:]]) + 1
        joint = shares / shares.sum() / (np.array([9, 9, 1]) + 3)
        assert found.log_density[0] == pytest.approx(np.log(joint.sum()), abs=1e-6)
        np.testing.assert_allclose(np.exp(found.log_proba[0]), joint / joint.sum(), atol=1e-6)
        assert found.log_proba.shape == (20, 3)


def test_a_network_that_is_a_star_is_naive_bayes():
    case = CASES["network, gaps"]
    star = tb.BayesianNetwork({"one": ["y"], "two": ["y"], "size": ["y"]})
    bayes = tb.NaiveBayes({("one", "two"): tb.Categorical(), "size": tb.Gaussian()}, prior=1)
    found = [tb.leave_one_out(model, case.data, "y") for model in (star, bayes)]
    np.testing.assert_allclose(found[0].log_proba, found[1].log_proba, atol=1e-9)
    np.testing.assert_allclose(found[0].log_density, found[1].log_density, atol=1e-9)


def test_probabilities_too_small_for_a_number_are_told():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 50)
    columns = {f"x{k}": rng.normal(60.0 * y) for k in range(20)}
    model = tb.BayesianNetwork({name: ["y"] for name in columns}, estimate="map")
    found = tb.cross_validate(model, {**columns, "y": y}, "y", folds=5)
    assert np.isfinite(found.log_proba).all()
    assert found.log_proba.min() < -1000


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", ["discriminant, gaps", "naive Bayes, unlabeled", "mixture", "chain, hidden"])
def test_leaving_out_too_many_rows_is_refused(name, monkeypatch):
    case = CASES[name]
    monkeypatch.setattr("tallybayes.evaluation.validation.cross_validation.MOST_FITS", 5)
    with pytest.raises(ValueError, match=r"expected at most 5 rows.\n.*tb.cross_validate"):
        tb.leave_one_out(case.model, case.data, case.target)


@pytest.mark.parametrize(
    ("name", "target", "words"),
    [
        ("mixture", [0] * 40, "components are not classes"),
        ("network", "size", "is continuous; expected a discrete node"),
        ("network", [0] * 40, "the name of a node"),
        ("network", "nothing", "nothing"),
        ("naive Bayes", None, "requires y"),
        ("nearest mean", None, "requires y"),
    ],
)
def test_targets_that_cannot_be_are_refused(name, target, words):
    case = CASES[name]
    for look in (tb.cross_validate, tb.leave_one_out):
        with pytest.raises(ValueError, match=words):
            look(case.model, case.data, target)


def test_densities_alone():
    logs = np.log([0.5, 0.25, 0.125, 0.5])
    found = tb.DensityEvaluation(logs, weight=[1.0, 1.0, 2.0, 0.0], by=["a", "a", None, "b"])
    assert found.bits_per_row.value == pytest.approx((1 + 2 + 3 * 2) / 4)
    assert {key: part.bits_per_row.value for key, part in found.groups.items()} == {"a": 1.5, None: 3.0}
    assert found.to_frame()["group"].tolist()[0] == "(all)"
    assert "(missing)" in repr(found)
    steps = tb.DensityEvaluation(logs, steps=[1, 2, 1, 0])
    assert steps.bits_per_step.value == pytest.approx((1 + 2 + 3) / 4)
    assert "bits per step" in repr(steps)
    assert np.isinf(tb.DensityEvaluation([-np.inf, 0.0]).loss.value)
    for options, words in (
        ({"steps": [1]}, "one for every sequence"),
        ({"weight": [0.0] * 4}, "have weight 0 or no steps"),
    ):
        with pytest.raises(ValueError, match=words):
            tb.DensityEvaluation(logs, **options)


def test_bits_per_step_of_states():
    case = CASES["chain"]
    found = tb.leave_one_out(case.model, case.data, case.target)
    bits = -found.log_likelihood.sum() / np.log(2) / sum(map(len, case.data))
    assert found.bits_per_step.value == pytest.approx(bits)
    assert logsumexp(found.log_proba, axis=1) == pytest.approx(0)


# ---- Evaluating ----------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", NAMES)
def test_other_rows_are_evaluated(name):
    case = CASES[name]
    half = np.arange(case.n) < case.n // 2
    model = case.fit(np.flatnonzero(half))
    rows = [k for k in np.flatnonzero(~half) if isinstance(case.target, str | None) or case.target[k] is not None]
    data, target = case.some(rows)
    by = ["odd" if k % 2 else "even" for k in rows]
    found = tb.evaluate(model, data, target, by=by)
    scores = [expected_scores(case, model, row) for row in rows]
    if case.kind in ("classes", "states"):
        shares = np.concatenate([np.atleast_2d(share) for share, _ in scores])
        np.testing.assert_allclose(np.exp(found.log_proba), shares, atol=1e-9)
    if case.kind == "states":
        flat = [label for states in target for label in states]
        known = [k for k, label in enumerate(flat) if label is not None]
        right = [model.states_[shares[k].argmax()] == flat[k] for k in known]
        assert found.accuracy.value == pytest.approx(np.mean(right))
    elif not isinstance(model, tb.NearestClassMean):
        np.testing.assert_allclose(found.log_density, [density for _, density in scores], atol=1e-9)
    assert set(found.groups) == {"odd", "even"}
    assert found.loss.value == pytest.approx(
        np.average(
            [part.loss.value for part in found.groups.values()],
            weights=[part.row_losses()[1].sum() if part.row_losses()[1] is not None else part.n_rows
                     for part in found.groups.values()],
        )
    )  # fmt: skip


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("name", "target", "words"),
    [
        ("mixture", [0] * 40, "components are not classes"),
        ("network", "size", "is continuous"),
        ("network", [0] * 40, "the name of a node"),
        ("naive Bayes", None, "requires y"),
        ("chain", [["nobody"] * 6, *[[0] * 9] * 5], "6 steps|steps and|does not know"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(name, target, words):
    case = CASES[name]
    model = case.fit(np.arange(case.n))
    with pytest.raises(ValueError, match=words):
        tb.evaluate(model, case.data, target)


def test_states_that_a_chain_does_not_know_are_refused():
    case = CASES["chain"]
    states = [[label + 1 for label in steps] for steps in case.target]
    with pytest.raises(ValueError, match="are not classes of the model: 2"):
        tb.evaluate(case.fit(np.arange(case.n)), case.data, states)


def test_an_impossible_row_of_a_network_is_named():
    rows = {"x": [0, 0, 1, 1], "y": ["a", "a", "b", "b"], "z": [0, 0, 1, 1]}
    model = tb.BayesianNetwork({"x": ["y"], "z": ["y"]}, estimate="mle").fit(rows)
    with pytest.warns(UserWarning, match="row 1 is impossible under this network"):
        found = tb.evaluate(model, {"x": [0, 0], "z": [0, 1], "y": ["a", "a"]}, "y")
    np.testing.assert_allclose(np.exp(found.log_proba), [[1, 0], [0.5, 0.5]])


def test_a_network_of_given_tables_is_evaluated():
    model = tb.BayesianNetwork.from_tables(
        {"smoke": ["fire"]},
        {"fire": [False, True], "smoke": [False, True]},
        {"fire": [0.9, 0.1], "smoke": [[0.95, 0.05], [0.1, 0.9]]},
    )
    found = tb.evaluate(model, {"fire": [True, False], "smoke": [True, None]}, "fire")
    np.testing.assert_allclose(np.exp(found.log_proba), [[1 / 3, 2 / 3], [0.9, 0.1]])
    assert tb.evaluate(model, {"fire": [True], "smoke": [True]}).bits_per_row.value == pytest.approx(-np.log2(0.09))


# ---- The strength of priors ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "nearest mean"])
def test_every_point_of_a_path_is_the_model_with_that_prior(name):
    case = CASES[name]
    path = tb.prior_path(case.model, case.data, case.target, [0.5, 4.0])
    whole = case.fit(np.arange(case.n))
    assert path.by_log_loss in (0.5, 4.0)
    assert len(path.to_frame()) == 2
    assert ("refitted for every fold" in repr(path)) == case.refitted
    assert path.results[0].loss_name in repr(path)
    n_pictures = 2 if case.kind in ("classes", "states") else 1
    assert len(path.plot().axes) == n_pictures + path.has_evidence
    for strength, bits, found in zip(path.strengths, path.log2_evidence, path.results, strict=True):
        prior = {key: belief.scaled(strength) for key, belief in whole.prior_.items()}
        model = clone(case.model).set_params(prior=prior)
        alone = case.fit(np.arange(case.n), model)
        if isinstance(model, tb.Mixture):
            assert bits == pytest.approx(alone.evidence_lower_bound_ / np.log(2))
        elif alone.tally_.soft:
            assert np.isnan(bits)
        else:
            assert bits == pytest.approx(alone.log_evidence() / np.log(2))
        held = np.flatnonzero(found.fold == 1)
        check_row(case, found, held[0], case.fit(np.flatnonzero(found.fold != 1), model))


def test_a_path_needs_a_prior():
    for model in (tb.NearestClassMean(), tb.BayesianNetwork({"x": []}, estimate="mle")):
        with pytest.raises(ValueError, match="has no prior; expected a model whose prior can be scaled"):
            tb.prior_path(model, {"x": [0, 1]}, "x")


# ---- Checks --------------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "nearest mean"])
def test_what_a_model_draws_looks_like_itself(name):
    case = CASES[name]
    target = None if isinstance(case.model, tb.BayesianNetwork) else case.target
    found = tb.predictive_check(case.fit(np.arange(case.n)), case.data, target, n_draws=60)
    assert found.table
    assert "PredictiveCheck" in repr(found)
    columns = {check.column for check in found.table}
    expected = set(case.data) if isinstance(case.data, dict) else set(range(np.shape(case.data[0])[0] or 1))
    assert columns == (expected if case.kind not in ("states", "steps") else {0})
    assert found.failed_checks == []
    assert found.replicates(found.table[0].column, 3)[1].shape[0] == 3
    assert len(found.plot().axes) >= 1


@pytest.mark.slow
def test_a_wrong_family_of_a_measured_node_is_found():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    rows = {"a": a, "b": b, "x": np.exp(rng.normal(a + b)), "z": rng.normal(a)}
    model = tb.BayesianNetwork({"x": ["a", "b"], "z": ["a"], "b": ["a"]}).fit(rows)
    found = tb.predictive_check(model, rows)
    assert {check.column for check in found.failed_checks} == {"x"}
    assert {check.label for check in found.failed_checks} <= {f"a = {i}, b = {j}" for i in (0, 1) for j in (0, 1)}
    groups = {check.label for check in found.table if check.column == "z"}
    assert groups == {"a = 0", "a = 1"}
    right = tb.BayesianNetwork({"x": ["a", "b"], "z": ["a"], "b": ["a"]}, columns={"x": tb.LogNormal()}).fit(rows)
    assert tb.predictive_check(right, rows).failed_checks == []


@pytest.mark.slow
def test_nodes_of_labels_are_drawn_given_their_parents_as_observed():
    rows = {"a": [0, 1] * 100, "b": [1, 0] * 100, "c": ["u", "v"] * 100}
    model = tb.BayesianNetwork({"c": ["a", "b"]}, prior=tb.BDeu(1)).fit(rows)
    (entropy,) = [c for c in tb.predictive_check(model, rows).table if (c.column, c.statistic) == ("c", "entropy")]
    assert entropy.low > 0.99  # a certain answer to each of two halves
    shifted = {**rows, "a": [0] * 200, "b": [1] * 200}
    found = tb.predictive_check(model, shifted)
    assert "c" in {check.column for check in found.failed_checks}  # drawn as u alone


def test_tables_that_were_given_are_drawn_from():
    model = tb.BayesianNetwork.from_tables(
        {"smoke": ["fire"]},
        {"fire": [False, True], "smoke": [False, True]},
        {"fire": [0.9, 0.1], "smoke": [[0.95, 0.05], [0.1, 0.9]]},
    )
    rng = np.random.default_rng(0)
    fire = rng.random(500) < 0.1
    smoke = np.where(fire, rng.random(500) < 0.9, rng.random(500) < 0.05)
    assert tb.predictive_check(model, {"fire": fire, "smoke": smoke}).failed_checks == []
    wrong = tb.predictive_check(model, {"fire": fire, "smoke": rng.random(500) < 0.5})
    assert {check.column for check in wrong.failed_checks} == {"smoke"}


@pytest.mark.slow
def test_one_component_does_not_look_like_two():
    rng = np.random.default_rng(1)
    rows = np.where(rng.random(500) < 0.3, rng.normal(8.0, 1.0, 500), rng.normal(0.0, 1.0, 500))[:, None]
    one, two = (tb.Mixture(k, random_state=0).fit(rows) for k in (1, 2))
    assert tb.predictive_check(one, rows).failed_checks
    assert tb.predictive_check(two, rows).failed_checks == []
    steps = [part.ravel() for part in np.split(rows, 10)]
    chains = [tb.HiddenMarkovModel(k, random_state=0).fit(steps) for k in (1, 2)]
    assert tb.predictive_check(chains[0], steps).failed_checks
    assert tb.predictive_check(chains[1], steps).failed_checks == []


def test_a_check_that_cannot_be_is_refused():
    network, mixture = (CASES[name].fit(np.arange(40)) for name in ("network", "mixture"))
    with pytest.raises(ValueError, match="expected no target"):
        tb.predictive_check(network, CASES["network"].data, "y")
    with pytest.raises(ValueError, match="components are not classes"):
        tb.predictive_check(mixture, CASES["mixture"].data, [0] * 40)
    with pytest.raises(ValueError, match="the data have 0 rows"):
        tb.predictive_check(mixture, np.zeros((0, 3)))
    with pytest.raises(ValueError, match="no row has a node together with all its parents"):
        tb.predictive_check(network, {"one": [0, 1]})


@pytest.mark.slow
def test_a_hidden_node_is_not_checked_and_neither_are_those_given_it():
    rows = {"x": ["u", "v"] * 20, "y": ["a", "b"] * 20, "z": [0, 1] * 20}
    parents, hidden = {"x": ["h"], "y": ["x"], "z": ["x", "h"]}, {"h": tb.Categorical(levels=(0, 1))}
    model = tb.BayesianNetwork(parents, columns=hidden, missing="em", random_state=0).fit(rows)
    assert {check.column for check in tb.predictive_check(model, rows).table} == {"y"}
