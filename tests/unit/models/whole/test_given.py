"""Models from known parameters, without counts: the same answers as counted ones, and what only counts tell refused."""

import copy
import pickle

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import tallybayes as tb

mpl.use("Agg")

SKY = {"yes": {"sun": 0.75, "rain": 0.25}, "no": {"sun": 0.25, "rain": 0.75}}
WARMTH = {"yes": {"mean": 24.0, "variance": 9.0}, "no": {"mean": 15.0, "variance": 16.0}}
START = {"hot": 0.8, "cold": 0.2}
MOVES = {"hot": {"hot": 0.6, "cold": 0.4}, "cold": {"hot": 0.5, "cold": 0.5}}
EATEN = {"hot": {1: 0.2, 2: 0.4, 3: 0.4}, "cold": {1: 0.5, 2: 0.4, 3: 0.1}}
MEANS = {"blue": [0, 0], "green": [6, 1], "red": [2, 6]}
SPREADS = {"blue": [[4, 2], [2, 2]], "green": [[1, 0], [0, 4]], "red": [[1, 0], [0, 1]]}
COVARIANCES = ("full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical")
R = 2**0.5
CLOUDS = np.concatenate(
    [
        [[2 * R, R], [-2 * R, -R], [0, R], [0, -R]],
        [[6 + R, 1], [6 - R, 1], [6, 1 + 2 * R], [6, 1 - 2 * R]],
        [[2 + R, 6], [2 - R, 6], [2, 6 + R], [2, 6 - R]],
    ]
)
COLORS = np.repeat(["blue", "green", "red"], 4)


def picnic(**options):
    return tb.NaiveBayes.from_parameters({"sky": SKY, "warmth": WARMTH}, {"yes": 0.4, "no": 0.6}, **options)


def ice_cream(**options):
    return tb.HiddenMarkovModel.from_tables(START, MOVES, EATEN, **options)


def clouds(covariance="full", **options):
    return tb.GaussianDiscriminant.from_parameters(MEANS, SPREADS, covariance=covariance, **options)


def heaps(**options):
    return tb.Mixture.from_parameters(
        {0: [{"mean": 0, "variance": 1}, {"mean": 5, "variance": 4}]}, [0.25, 0.75], **options
    )


ROWS = {"sky": ["sun", "rain", None], "warmth": [20.0, np.nan, 17.0]}
MAKERS = {"NaiveBayes": picnic, "HiddenMarkovModel": ice_cream, "GaussianDiscriminant": clouds, "Mixture": heaps}
ASKED = {"NaiveBayes": ROWS, "HiddenMarkovModel": [[3, 1, None], [2]], "GaussianDiscriminant": [[3.0, 3.0], [8, 8]]}
ASKED["Mixture"] = [[1.0], [4.0]]


# ---- The numbers ----------------------------------------------------------------------------------------------------


def test_naive_bayes_is_bayes_rule():
    model = picnic()
    assert model.classes_.tolist() == ["no", "yes"]
    bell = [np.exp(-((20 - m) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v) for m, v in ((15, 16), (24, 9))]
    joint = np.array([0.6 * 0.25 * bell[0], 0.4 * 0.75 * bell[1]])
    one = {"sky": ["sun"], "warmth": [20.0]}
    np.testing.assert_allclose(np.exp(model.predict_joint_log_proba(one)[0]), joint, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(one)[0], joint / joint.sum(), rtol=1e-12)
    np.testing.assert_allclose(np.exp(model.score_samples(one)), joint.sum(), rtol=1e-12)
    assert model.parameters_["sky"]["no", "rain"] == 0.75
    assert model.parameter_table("warmth")["yes"]["mean"] == 24.0
    assert model.n_parameters_ == 1 + 2 + 4
    assert "fixed by the user" in repr(model.parameters_)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_discriminant_is_the_one_that_is_counted(covariance):
    # The clouds have exactly these moments.
    counted = tb.GaussianDiscriminant(covariance, estimate="mle").fit(CLOUDS, COLORS)
    given, asked = clouds(covariance), [[3, 3], [8, 8], [np.nan, 2]]
    np.testing.assert_allclose(given.predict_joint_log_proba(asked), counted.predict_joint_log_proba(asked), rtol=1e-11)
    np.testing.assert_allclose(given.transform([[3, 3]]) ** 2, counted.transform([[3, 3]]) ** 2 * 12 / 9, rtol=1e-9)
    assert given.n_parameters_ == counted.n_parameters_
    assert given.predict(asked).tolist() == counted.predict(asked).tolist()
    again = clouds().reestimate(covariance=covariance)
    np.testing.assert_array_equal(again.predict_proba(asked), given.predict_proba(asked))
    if covariance in ("full", "tied"):
        shrunk = counted.reestimate(shrinkage=0.5).predict_proba(asked)
        np.testing.assert_allclose(clouds(covariance, shrinkage=0.5).predict_proba(asked), shrunk, rtol=1e-11)


@pytest.mark.parametrize(
    ("covariance", "spread", "matrices"),
    [
        ("tied", [[2, 1], [1, 3]], [[[2, 1], [1, 3]]] * 3),
        ("diagonal", [[1, 2], [3, 4], [5, 6]], [np.diag([1, 2]), np.diag([3, 4]), np.diag([5, 6])]),
        ("diagonal", {"red": [5, 6], "blue": [1, 2], "green": [3, 4]}, [np.diag([k, k + 1]) for k in (1, 3, 5)]),
        ("tied_diagonal", [1, 2], [np.diag([1, 2])] * 3),
        ("spherical", {"blue": 1, "green": 2, "red": 3}, [np.eye(2), 2 * np.eye(2), 3 * np.eye(2)]),
        ("tied_spherical", 2.5, [2.5 * np.eye(2)] * 3),
    ],
)  # fmt: skip
def test_covariances_in_the_shape_that_they_have(covariance, spread, matrices):
    model = tb.GaussianDiscriminant.from_parameters(MEANS, spread, covariance=covariance)
    whole = tb.GaussianDiscriminant.from_parameters(MEANS, dict(zip(MEANS, matrices, strict=True)))
    np.testing.assert_allclose(model.predict_proba([[3, 3]]), whole.predict_proba([[3, 3]]), rtol=1e-12)


def test_every_shape_that_people_have():
    arrays = tb.GaussianDiscriminant.from_parameters(
        np.array([[2, 6], [0, 0], [6, 1]]), np.array([SPREADS[c] for c in ("red", "blue", "green")]),
        [0.2, 0.3, 0.5], classes=["red", "blue", "green"],
    )  # fmt: skip
    frames = tb.GaussianDiscriminant.from_parameters(
        pd.DataFrame(MEANS, index=["a", "b"]).T,
        {c: pd.DataFrame(m, index=["a", "b"], columns=["a", "b"]) for c, m in SPREADS.items()},
        pd.Series({"red": 0.2, "green": 0.5, "blue": 0.3}),
    )
    found = arrays.predict_proba([[3, 3]])
    np.testing.assert_array_equal(frames.predict_proba({"a": [3], "b": [3]}), found)
    np.testing.assert_array_equal(frames.predict_proba(pd.DataFrame({"b": [3], "a": [3]})), found)
    one = picnic()
    sky = tb.NaiveBayes.from_parameters(
        {"sky": np.array([[0.25, 0.75], [0.75, 0.25]]), "warmth": pd.DataFrame(WARMTH).T},
        [0.6, 0.4], classes=["no", "yes"], levels={"sky": ["sun", "rain"]},
    )  # fmt: skip
    np.testing.assert_array_equal(sky.predict_proba(ROWS), one.predict_proba(ROWS))
    told = tb.NaiveBayes.from_parameters(one.parameters_)
    np.testing.assert_array_equal(told.predict_proba(ROWS), one.predict_proba(ROWS))
    chain = tb.HiddenMarkovModel.from_tables(
        [0.8, 0.2],
        [[0.6, 0.4], [0.5, 0.5]],
        [[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]],
        states=["hot", "cold"],
        levels=[1, 2, 3],
    )
    frame = tb.HiddenMarkovModel.from_tables(pd.Series(START), pd.DataFrame(MOVES).T, pd.DataFrame(EATEN).T)
    for model in (chain, frame):
        np.testing.assert_array_equal(model.score_samples([[3, 1, 3]]), ice_cream().score_samples([[3, 1, 3]]))
    plain = tb.HiddenMarkovModel.from_tables([0.5, 0.5], np.eye(2), [[1, 0], [0.5, 0.5]])
    assert plain.states_.tolist() == [0, 1]
    assert plain.score_samples([[0, 0]])[0] == pytest.approx(np.log(0.5 + 0.125))


@pytest.mark.slow
def test_what_another_model_has_learned_can_be_given():
    rng, n = np.random.default_rng(0), 200
    frame = pd.DataFrame(
        {
            "sky": rng.choice(["sun", "rain"], n), "heat": rng.normal(size=n), "late": rng.random(n) < 0.3,
            "calls": rng.poisson(3, n), "age": rng.uniform(0, 90, n), "income": rng.lognormal(size=n),
            "won": rng.integers(0, 2, n),
        }
    )  # fmt: skip
    families = {
        "calls": tb.Poisson(),
        "age": tb.Binned((0, 30, 60, 90)),
        "income": tb.LogNormal(),
        "won": tb.Bernoulli(),
    }
    learned = tb.NaiveBayes({**families, ...: "auto"}, estimate="mle").fit(frame, rng.choice(["a", "b"], n))
    given = tb.NaiveBayes.from_parameters(
        learned.parameters_, columns={name: families[name] for name in ("age", "won")}
    )
    np.testing.assert_allclose(given.predict_proba(frame), learned.predict_proba(frame), rtol=1e-9)
    X = frame[["heat", "age"]]
    found = tb.Mixture(2, estimate="mle", random_state=0).fit(X)
    again = tb.Mixture.from_parameters(found.parameters_)
    np.testing.assert_allclose(again.score_samples(X), found.score_samples(X), rtol=1e-9)
    whole = tb.GaussianDiscriminant(estimate="mle").fit(CLOUDS, COLORS)
    same = tb.GaussianDiscriminant.from_parameters(
        whole.means_, whole.covariances_, whole.class_prior_, classes=whole.classes_
    )
    np.testing.assert_allclose(same.predict_proba(CLOUDS), whole.predict_proba(CLOUDS), rtol=1e-9)
    chain = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(
        [[3, 3, 2], [1, 1, 2]], [[0, 0, 1], [1, 1, 1]]
    )
    tables = chain.parameters_
    given = tb.HiddenMarkovModel.from_tables(tables["start"], tables["transition"], tables[0])
    np.testing.assert_allclose(given.score_samples([[1, 2, 2]]), chain.score_samples([[1, 2, 2]]))


def test_yes_and_no_words_rates_and_blocks():
    model = tb.NaiveBayes.from_parameters(
        {
            "card": {"spam": 0.75, "ham": 0.25},
            "winner": {"spam": 0.5, "ham": 0.1},
            "links": {"spam": {"rate": 4}, "ham": {"rate": 1}},
            ("a", "b"): {c: {"mean": [0, m], "covariance": [[1, 0.5], [0.5, 1]]} for c, m in (("spam", 1), ("ham", 2))},
            ("win", "me"): [{"win": 0.9, "me": 0.1}, [0.2, 0.8]],
        },
        {"spam": 0.3, "ham": 0.7},
        columns={("win", "me"): tb.Multinomial()},
    )
    assert model.columns_["card"] == model.columns_["winner"] == tb.Bernoulli()
    one = {"card": [1], "winner": [0], "links": [2], "a": [0.0], "b": [1.0], "win": [1], "me": [1]}
    fitted = model.predict_proba(one)[0]
    gap = np.array([0.0, -1.0])
    bell = np.exp(-0.5 * gap @ np.linalg.inv([[1, 0.5], [0.5, 1]]) @ gap)
    spam = 0.3 * 0.75 * 0.5 * 4**2 * np.exp(-4) * 1.0 * 0.9 * 0.1
    ham = 0.7 * 0.25 * 0.9 * np.exp(-1) * bell * 0.2 * 0.8
    np.testing.assert_allclose(fitted, np.array([ham, spam]) / (ham + spam), rtol=1e-12)


def test_a_chain_with_an_end_and_absorbing_states():
    model = tb.HiddenMarkovModel.from_tables(
        {"well": 1.0}, {"well": {"well": 0.9, "dead": 0.1}, "dead": {"dead": 1.0}},
        {"well": {"walks": 1.0}, "dead": {"lies": 1.0}}, end={"well": 0.0, "dead": 0.5}, states=["well", "dead"],
    )  # fmt: skip
    np.testing.assert_allclose(np.exp(model.score_samples([["walks", "walks", "lies"]])), 0.9 * 0.1 * 0.5)
    with pytest.warns(UserWarning, match="impossible at step 0"):
        assert np.isneginf(model.score_samples([["lies", "walks"], ["walks"]])).all()
    with pytest.warns(UserWarning, match="impossible"):
        assert not np.isnan(model.predict_proba([["lies"]])[0]).any()
    drawn, states = model.sample([50] * 20, random_state=0)
    assert all(path[-1] == "dead" for path in states)
    assert all(len(steps) == len(path) for steps, path in zip(drawn, states, strict=True))


def test_one_state_one_class_and_steps_that_nobody_knows():
    alone = tb.HiddenMarkovModel.from_tables({7: 1.0}, {7: {7: 1.0}}, {7: {"a": 0.5, "b": 0.5}})
    assert alone.predict([["a", None, "zebra"]])[0].tolist() == [7, 7, 7]
    assert alone.score_samples([["a", None, "zebra"]])[0] == pytest.approx(np.log(0.5))  # an unknown step says nothing
    assert alone.score_samples([[]])[0] == 0.0
    with pytest.raises(tb.LabelError, match="zebra"):
        alone.set_params(unseen="error").score_samples([["zebra"]])
    only = tb.NaiveBayes.from_parameters({"x": {"a": {"mean": 0, "variance": 1}}}, {"a": 1})
    assert only.predict_proba({"x": [3.0]}).tolist() == [[1.0]]
    assert only.predict({"x": [3.0]}).tolist() == ["a"]


def test_impossible_rows_have_their_class_prior():
    sure = {"x": {"a": {"p": 1.0, "q": 0.0}, "b": {"p": 1.0}}}
    model = tb.NaiveBayes.from_parameters(sure, {"a": 0.3, "b": 0.7}, columns={"x": tb.Categorical(levels=("p", "q"))})
    with pytest.warns(UserWarning, match="impossible in every class"):
        np.testing.assert_allclose(model.predict_proba({"x": ["q"]}), [[0.3, 0.7]])
    assert np.isneginf(model.score_samples({"x": ["q"]}))


# ---- What needs counts, and what does not ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MAKERS)
def test_answers_without_counts(kind):
    model, asked = MAKERS[kind](), ASKED[kind]
    for method in ("predict", "predict_proba", "score_samples", "impute"):
        getattr(model, method)(asked)
    model.sample([3] if kind == "HiddenMarkovModel" else 3, random_state=0)
    for show in (repr, lambda m: repr(m.summary()), lambda m: m._repr_html_(), dir, lambda m: repr(m.parameters_)):
        show(model)
    assert not any(hasattr(model, name) for name in ("bic_", "aic_", "prior_", "posterior_"))
    if kind == "HiddenMarkovModel":
        assert np.isfinite(model.log_likelihood(asked))
        assert model.forward(asked)[0].log.shape == (3, 2)
        return
    one = {name: [column[0]] for name, column in asked.items()} if kind == "NaiveBayes" else asked[:1]
    model.explain(asked), model.show_work(one), model.decide(asked, 1 - np.eye(len(model.classes_)))
    model.predict_set(asked)
    model.plot_columns()
    plt.close("all")
    np.testing.assert_allclose(model.predict_proba(asked, class_prior="uniform").sum(axis=1), 1)


def test_linear_forms_and_pictures():
    model = clouds("tied")
    model.discriminant_functions_, model.to_linear()
    model.plot_decision_boundary(CLOUDS, COLORS), model.plot_projection(CLOUDS, COLORS)
    ice_cream().plot_transitions(), ice_cream().plot_states([3, 1, 3])
    plt.close("all")
    with pytest.raises(tb.NotLinearError):
        clouds().to_linear()


def test_the_classes_where_it_is_used():
    model = picnic()
    rows, _ = picnic().set_params(class_prior={"yes": 0.9, "no": 0.1}).sample(4000, random_state=0)
    assert model.estimate_class_prior(rows)["yes"] == pytest.approx(0.9, abs=0.02)
    found = tb.evaluate(model, *picnic().sample(2000, random_state=1))
    assert found.calibration_error.value < 0.03  # its own rows
    assert not tb.predictive_check(model, *picnic().sample(200, random_state=2)).failed_checks


@pytest.mark.parametrize("kind", MAKERS)
def test_what_needs_counts_is_refused(kind):
    model = MAKERS[kind]()
    refused = [
        model.log_evidence,
        model.description_length,
        lambda: model.bic_,
        lambda: model.prior_,
        lambda: model.posterior_,
    ]
    refused += [lambda: model.reestimate(estimate="mle"), lambda: model.set_params(prior=1)]
    refused += [lambda: model.evidence_lower_bound_] if kind == "Mixture" else [lambda: model + model]
    if kind == "HiddenMarkovModel":
        refused += [lambda: model.partial_fit([[3]], [["hot"]]), lambda: model.forget([[3]], [["hot"]])]
        refused += [lambda: model.reestimate(unseen="smooth").score_samples([[3]])]
    elif kind != "Mixture":
        X, y = ASKED[kind], model.classes_[[0, 1, 0]][: 3 if kind == "NaiveBayes" else 2]
        refused += [lambda: model.partial_fit(X, y), lambda: model.forget(X, y), lambda: model.drop_class(y[0])]
        refused += [
            lambda: model.calibrate(X, y),
            lambda: model.add_class("new", X),
            lambda: model.predict_proba_interval(X),
        ]
        refused += [lambda: model.predict_proba(X, class_prior="frequency")]
    before = pickle.dumps(model.get_params())
    for change in refused:
        with pytest.raises(tb.NoCountsError, match="needs counts"):
            change()
    assert pickle.dumps(model.get_params()) == before
    assert model._fixed_parameters is not None


@pytest.mark.parametrize("kind", MAKERS)
def test_saved_copied_and_pickled_as_they_are(kind, tmp_path):
    model, asked = MAKERS[kind](), ASKED[kind]
    model.save(tmp_path / "model.tally")
    for other in (tb.load(tmp_path / "model.tally"), copy.copy(model), pickle.loads(pickle.dumps(model))):
        for one, two in zip(other.predict_proba(asked), model.predict_proba(asked), strict=True):
            np.testing.assert_array_equal(one, two)
        with pytest.raises(tb.NoCountsError):
            other.log_evidence()
    assert not hasattr(clone(model), "tally_")


def test_fitted_anew_nothing_is_left_of_what_was_given():
    model = picnic().fit({"sky": ["sun", "rain"], "warmth": [20.0, 10.0]}, ["yes", "no"])
    plain = tb.NaiveBayes(columns=model.columns).fit({"sky": ["sun", "rain"], "warmth": [20.0, 10.0]}, ["yes", "no"])
    np.testing.assert_array_equal(model.predict_proba(ROWS), plain.predict_proba(ROWS))
    assert np.isfinite(model.log_evidence())
    given = picnic()
    given.set_params(class_prior={"yes": 0.9, "no": 0.1})
    assert given._fixed_parameters is not None
    np.testing.assert_allclose(given.predict_proba({"sky": [None], "warmth": [None]}), [[0.1, 0.9]])


# ---- Worth so many rows ---------------------------------------------------------------------------------------------


def test_strength_is_so_many_rows_of_labels():
    given = {"x": {"a": {"p": 0.8, "q": 0.2}, "b": {"p": 0.5, "q": 0.5}}, "z": {"a": 0.25, "b": 0.5}}
    model = tb.NaiveBayes.from_parameters(given, {"a": 0.75, "b": 0.25}, strength=20)
    assert model.parameters_["x"]["a"] == pytest.approx({"p": 0.8, "q": 0.2})
    np.testing.assert_allclose(model.class_log_prior_, np.log([0.75, 0.25]))
    model.partial_fit({"x": ["q", "q"], "z": [1, 1]}, ["a", "a"])
    # Of 20 rows 15 are of a: 12 with p, 3 with q, of which there are 5 now; and 15 · ¼ + 2 of 17 have z.
    assert model.parameters_["x"]["a", "q"] == pytest.approx(5 / 17)
    assert model.parameters_["z"]["a", 1] == pytest.approx((15 / 4 + 2) / 17)
    assert model.parameters_["x"]["b", "q"] == pytest.approx(0.5)
    np.testing.assert_allclose(np.exp(model.class_log_prior_), [17 / 22, 5 / 22])
    model.forget({"x": ["q", "q"], "z": [1, 1]}, ["a", "a"])
    assert model.parameters_["x"]["a", "q"] == pytest.approx(0.2)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_strength_is_so_many_rows_of_measurements(covariance, tmp_path):
    model = clouds(covariance, strength=30)
    asked = [[3, 3], [8, 8]]
    told = model._all_factors.scorers[1].point
    np.testing.assert_allclose(told.mean, [MEANS[c] for c in ("blue", "green", "red")])
    wanted = clouds(covariance)._estimated_classifier.factors.scorers[0].parameters
    np.testing.assert_allclose(np.broadcast_to(told[1], wanted[1].shape), wanted[1], rtol=1e-9)  # expected, of no rows
    strong = clouds(covariance, strength=1e9)
    np.testing.assert_allclose(strong.predict_proba(asked), clouds(covariance).predict_proba(asked), rtol=1e-6)
    model.partial_fit([[2.0, 6.0]] * 10, ["red"] * 10)
    np.testing.assert_allclose(np.exp(model.class_log_prior_), [10 / 40, 10 / 40, 20 / 40])
    model.save(tmp_path / "prior.tally")
    np.testing.assert_array_equal(tb.load(tmp_path / "prior.tally").predict_proba(asked), model.predict_proba(asked))
    with pytest.raises(tb.PriorError, match="larger strength"):
        clouds(covariance, strength=0.5)


def test_strength_of_a_chain_is_of_every_line():
    model = ice_cream(strength=10)
    np.testing.assert_allclose(model.transition_, ice_cream().transition_)
    model.partial_fit([[3, 3]], [["hot", "hot"]])
    np.testing.assert_allclose(model.transition_[1], [4 / 11, 7 / 11])
    np.testing.assert_allclose(model.emission_[0][3], [0.1, 6 / 12])
    np.testing.assert_allclose(model.start_, [2 / 11, 9 / 11])
    with pytest.raises(tb.PriorError, match="contains 0"):
        tb.HiddenMarkovModel.from_tables(START, {"hot": {"hot": 1.0}, "cold": {"cold": 1.0}}, EATEN, strength=5)
    ends = ice_cream(end={"hot": 0.25, "cold": 0.5}, strength=4).partial_fit([[1]], [["hot"]])
    np.testing.assert_allclose(ends.end_, [0.5, 2 / 5])


# ---- Where EM starts ------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
def test_em_climbs_from_there_and_keeps_the_names(estimate):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 100), rng.normal(5, 2, 100)])[:, None]
    far = tb.Mixture.from_parameters({0: [{"mean": 9, "variance": 4}, {"mean": -3, "variance": 1}]}, [0.5, 0.5])
    model = tb.Mixture(2, columns=far.columns_, estimate=estimate).fit(X, initial=far)
    assert model.parameter_table(0)[0]["mean"] > 4  # not the other way round
    assert model.parameter_table(0)[1]["mean"] < 1
    assert (np.diff(model.history_) > -1e-9).all()
    if estimate == "mle":
        assert model.history_[0] == pytest.approx(far.log_likelihood(X))
    steps = [list(s) for s in ("aabba", "bbbab", "abbbb")]
    swapped = tb.HiddenMarkovModel.from_tables(
        {"x": 0.5, "y": 0.5}, {"x": {"x": 0.7, "y": 0.3}, "y": {"x": 0.4, "y": 0.6}},
        {"x": {"b": 0.9, "a": 0.1}, "y": {"a": 0.8, "b": 0.2}},
    )  # fmt: skip
    chain = tb.HiddenMarkovModel(columns=swapped.columns_, estimate=estimate, tol=1e-9, max_iter=1000)
    chain.fit(steps, initial=swapped)
    assert chain.states_.tolist() == ["x", "y"]
    assert (np.diff(chain.history_) > -1e-9).all()
    assert chain.emission_[0]["b"][0] > chain.emission_[0]["b"][1]
    again = tb.HiddenMarkovModel(columns=swapped.columns_, estimate=estimate, tol=1e-9, max_iter=1000)
    again.fit(steps, initial=chain)  # a fitted one will do as well, and is at its top
    assert len(again.history_) <= 3 or estimate == "bayes"
    named = tb.HiddenMarkovModel(columns=swapped.columns_, max_iter=1000).fit(
        steps, [["x", *[None] * 4]] * 3, initial=swapped
    )
    assert named.states_.tolist() == ["x", "y"]
    assert named.predict(steps)[0][0] == "x"


def test_starts_that_are_none():
    model = tb.HiddenMarkovModel(columns=ice_cream().columns_)
    for start, steps, y, message in (
        ("x", [[1]], None, "initial is str; expected a HiddenMarkovModel"),
        (ice_cream(), [[1]], [["mild"]], "mild"),
        (tb.HiddenMarkovModel.from_tables(START, MOVES, {s: {"rate": 1} for s in START}), [[1]], None, "initial= has"),
    ):
        with pytest.raises((tb.DataError, tb.LabelError), match=message):
            model.fit(steps, y, initial=start)
    with pytest.raises(tb.DataError, match="initial= has 2 states, and n_states is 3"):
        tb.HiddenMarkovModel(3, ice_cream().columns_).fit([[1]], initial=ice_cream())
    with pytest.raises(tb.DataError, match="does not model the end"):
        tb.HiddenMarkovModel(columns=ice_cream().columns_, end_state=True).fit([[1]], initial=ice_cream())
    never = tb.HiddenMarkovModel.from_tables(START, MOVES, {s: {1: 1.0, 2: 0.0} for s in START})
    with pytest.raises(tb.DataError, match="initial= gives every sequence probability 0"):
        tb.HiddenMarkovModel(columns=never.columns_).fit([[2]], initial=never)
    with pytest.raises(tb.DataError, match="initial= has 2 components, and n_components is 3"):
        tb.Mixture(3).fit([[1.0], [2.0]], initial=heaps())
    with pytest.raises(tb.DataError, match="expected a Mixture"):
        tb.Mixture(2).fit([[1.0], [2.0]], initial=picnic())
    with pytest.raises(tb.DataError, match=r"columns=initial\.columns_"):
        tb.Mixture(2, tb.Poisson()).fit([[1.0], [2.0]], initial=heaps())


# ---- What is wrong with numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": {"hot": 0.8, "cold": 0.3}}, r"start sums to 1.1; expected probabilities that sum to 1"),
        ({"start": {"hot": 1.2, "cold": -0.2}}, r"start has the probability 1.2"),
        ({"start": {"hot": 0.5, "cold": np.nan}}, r"start has a non-finite probability"),
        ({"start": {"hot": 0.8, "cool": 0.2}}, r"has 'cold'; expected 'hot', 'cool'"),
        ({"start": {"hot": 0.5, 1: 0.5}}, r"int|string"),
        ({"start": "x"}, r"states is 'x'"),
        ({"transition": {"hot": {"hot": 0.6, "cold": 0.5}, "cold": {"hot": 1}}}, r"transition, 'hot', sums to 1.1"),
        ({"transition": {"hot": {"hot": 0.6, "colld": 0.4}, "cold": {"hot": 1}}}, r"unknown to it: 'colld'"),
        ({"transition": {"hot": {"hot": 1}}}, r"transition lacks 'cold'"),
        ({"transition": [[1.0]]}, r"transition is 1 parts; expected one for each"),
        ({"transition": [[1.0], [1.0]]}, r"has shape \(1,\)"),
        ({"emission": {"hot": {1: 0.5}, "cold": {1: 1.0}}}, r"of 'hot' sums to 0.5"),
        ({"emission": {"hot": {"mean": 1, "std": 2}, "cold": {"mean": 1, "std": 2}}}, r"Pass its square as 'variance'"),
        ({"emission": {s: {"mean": 1, "variance": 0} for s in START}}, r"of 'hot' has the variance 0"),
        ({"emission": {s: {"rate": -1} for s in START}}, r"has the rate -1"),
        ({"emission": 0.5}, r"emission is of 0 axes"),
        ({"end": {"hot": 0.1}}, r"end is without 'cold'"),
        ({"end": [0.1, 1.5]}, r"has the probability 1.5"),
        ({"strength": 0}, r"strength is 0; expected a positive number of rows"),
    ],
)
def test_tables_that_are_none(change, message):
    with pytest.raises((tb.DataError, tb.EstimateError, tb.LabelError), match=message):
        tb.HiddenMarkovModel.from_tables(**{"start": START, "transition": MOVES, "emission": EATEN, **change})


def test_moments_that_are_none():
    make = tb.GaussianDiscriminant.from_parameters
    for spread, message in (
        ({**SPREADS, "red": [[1, 2], [2, 1]]}, "class 'red' has a covariance that is not positive definite"),
        ({**SPREADS, "red": [[1, 1], [1, 1]]}, "class 'red' has a covariance that is not positive definite"),
        ({**SPREADS, "red": [[1, 0.5], [0, 1]]}, "class 'red' has a covariance that is not symmetric"),
        ({**SPREADS, "red": [[1]]}, r"the covariance of 'red' has shape \(1, 1\); expected \(2, 2\)"),
        ({"blue": SPREADS["blue"]}, "covariances lacks 'green'"),
        (np.ones((2, 2, 2)), r"covariances has shape \(2, 2, 2\)"),
    ):
        with pytest.raises((tb.DataError, tb.EstimateError, tb.LabelError), match=message):
            make(MEANS, spread)
    with pytest.raises(tb.EstimateError, match=r"class_prior sums to 1\.5"):
        make(MEANS, SPREADS, {"blue": 0.5, "green": 0.5, "red": 0.5})
    with pytest.raises(tb.DataError, match="the mean of 'red'"):
        make({**MEANS, "red": [1]}, SPREADS)
    with pytest.raises(tb.EstimateError, match="covariance"):
        make(MEANS, SPREADS, covariance="fll")
    with pytest.raises(tb.EstimateError, match=r"unseen|estimate"):
        picnic(estimate="baies")
    with pytest.raises(tb.NoCountsError, match="shrinkage='auto'"):
        make(MEANS, SPREADS, shrinkage="auto").predict([[3, 3]])
    with pytest.raises(tb.DataError, match="parameters is list"):
        tb.NaiveBayes.from_parameters([1], {"a": 1})
    with pytest.raises(tb.DataError, match="numbers without a name"):
        tb.NaiveBayes.from_parameters({"x": [[0.5, 0.5]]}, [1.0])
    with pytest.raises(tb.DataError, match="class_prior is None"):
        tb.NaiveBayes.from_parameters({"x": {"a": 0.5}}, None)
    with pytest.raises(tb.DataError, match="one for each of 0, 1"):
        tb.Mixture.from_parameters({"x": {"a": 0.5}}, {"a": 1})
