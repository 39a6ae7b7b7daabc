"""The evidence of models, against the chain rule and hand-made integrals, and the comparison of models by it."""

import math

import numpy as np
import pytest
from scipy.special import betaln, gammaln
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, StatisticsError

rng = np.random.default_rng(11)
N = 30
Y = np.array(list("abc"))[rng.integers(0, 3, N)]
ROWS = {
    "sky": np.array(["sun", "rain"], dtype=object)[rng.integers(0, 2, N)],
    "windy": rng.integers(0, 2, N).astype(float),
    "calls": rng.poisson(3.0, N).astype(float),
    "warmth": rng.normal(20.0, 3.0, N),
    "noise": rng.normal(0.0, 1.0, N),
    "price": np.exp(rng.normal(0.0, 1.0, N)),
    "age": rng.uniform(0, 90, N),
    "hits": rng.integers(0, 5, N).astype(float),
    "words": rng.poisson(1.0, (N, 3)).astype(float),
}
ROWS["warmth"][4] = np.nan
ROWS["calls"][7] = np.nan
ROWS["sky"][9] = None
ROWS["age"][2] = np.nan
COLUMNS = {
    "sky": tb.Categorical(levels=("rain", "sun")),
    "windy": tb.Bernoulli(),
    "calls": tb.Poisson(),
    ("warmth", "noise"): tb.Gaussian(),
    "price": tb.LogNormal(),
    "age": tb.Binned((0, 18, 40, 90)),
    "hits": tb.Binomial(4),
    "words": tb.DirichletMultinomial(),
}
PRIORS = {
    "sky": tb.Dirichlet(0.5),
    "windy": tb.Beta(2, 1),
    "calls": tb.Gamma(2.0, 0.7),
    "warmth": tb.NormalInverseGamma([18.0, 1.0], 0.5, 2.0, 4.0),
    "noise": tb.NormalInverseGamma([18.0, 1.0], 0.5, 2.0, 4.0),
    "price": tb.NormalInverseGamma(0.1, 1.0, 2.0, 2.0),
    "age": tb.Dirichlet([1.0, 2.0, 3.0]),
    "hits": tb.Beta(1, 1),
    "words": tb.Dirichlet(0.3),
}


def some(rows, part):
    return {name: column[part] for name, column in rows.items()}


def check_chain(make, rows, y, n):
    """Every further row adds the log probability that the model of the rows before gives it."""
    model = make().partial_fit(some(rows, slice(0, 1)), y[:1], classes=["a", "b", "c"])
    for i in range(1, n):
        before = model.log_evidence()
        row = some(rows, slice(i, i + 1))
        step = model.predict_joint_log_proba(row)[0, "abc".index(y[i])]
        model.partial_fit(row, y[i : i + 1])
        assert model.log_evidence() - before == pytest.approx(step, rel=1e-9, abs=1e-9)
    return model


@pytest.mark.slow
def test_the_evidence_of_naive_bayes_is_the_chain_rule():
    made = lambda: tb.NaiveBayes(COLUMNS, prior=PRIORS, class_prior=tb.Dirichlet(1))  # noqa: E731
    model = check_chain(made, ROWS, Y, N)
    # Dirichlet(1) is what classes without a prior of their own get
    assert model.reestimate(class_prior=None).log_evidence() == model.log_evidence()
    empty = model.forget(ROWS, Y)
    assert empty.log_evidence() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("family", ["Gaussian", "TiedGaussian", "SphericalGaussian", "TiedSphericalGaussian"])
def test_the_evidence_of_gaussians_is_the_chain_rule(family):
    X = {"x": rng.normal(size=(20, 2)) * [1.0, 5.0]}
    made = getattr(tb, family)()
    shape = [2.0] if "Spherical" in family else [2.0, 3.0]
    prior = tb.NormalInverseGamma([0.0, 1.0], 0.5, shape, shape)
    if made.tied_over:  # a shared variance couples the classes: the predictive of one row looks at all of them
        prior = prior.tied(made.tied_over)
    check_chain(lambda: tb.NaiveBayes({"x": made}, prior=prior, class_prior=tb.Dirichlet(1)), X, Y, 20)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_the_evidence_of_discriminants_is_the_chain_rule(covariance):
    X = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 3))
    prior = tb.NormalInverseWishart(np.zeros(3), 0.5, 4.0, np.eye(3) + 0.2)
    settings = {"covariance": covariance, "prior": prior, "class_prior": tb.Dirichlet(1)}
    model = tb.GaussianDiscriminant(**settings).partial_fit(X[:1], Y[:1], classes=["a", "b", "c"])
    for i in range(1, 20):
        before, step = model.log_evidence(), model.predict_joint_log_proba(X[i : i + 1])[0, "abc".index(Y[i])]
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
        assert model.log_evidence() - before == pytest.approx(step, rel=1e-9, abs=1e-9)


def test_the_evidence_is_that_of_its_columns_learned_apart():
    columns = {key: family for key, family in COLUMNS.items() if key != "words"}
    model = tb.NaiveBayes(columns, prior=1).fit(ROWS, Y)
    total = tb.fit_distribution(Y, tb.Categorical(levels=("a", "b", "c"))).log_evidence(tb.Dirichlet(1))
    for key, family in columns.items():
        for name in key if isinstance(key, tuple) else (key,):
            total += np.sum(tb.fit_distribution(ROWS[name], family, group=Y).log_evidence())
    assert model.log_evidence() == pytest.approx(total, rel=1e-11)
    model = model.reestimate(prior=None)  # by default a prior is resolved as for "bayes"; "map" has its own
    assert model.reestimate(estimate="mle").log_evidence() == model.log_evidence()
    assert model.reestimate(estimate="map").log_evidence() != model.log_evidence()


def test_class_priors():
    X, y = np.array([[1], [1], [0], [1]]), ["a", "a", "b", "b"]
    cells = betaln(3, 1) + betaln(2, 2)
    expected = {
        "uniform": 4 * math.log(0.5),
        "given": 2 * math.log(0.3) + 2 * math.log(0.7),
        "dirichlet": gammaln(5) - gammaln(9) + gammaln(4) - gammaln(2) + gammaln(5) - gammaln(3),
        "none": gammaln(2) - gammaln(6) + 2 * gammaln(3),
    }
    priors = {"uniform": "uniform", "given": {"a": 0.3, "b": 0.7}, "dirichlet": tb.Dirichlet([2.0, 3.0]), "none": None}
    for name, prior in priors.items():
        model = tb.NaiveBayes(tb.Bernoulli(), prior=1, class_prior=prior).fit(X, y)
        assert model.log_evidence() == pytest.approx(expected[name] + cells, rel=1e-12), name
    assert tb.NaiveBayes(tb.Bernoulli(), class_prior={"a": 1.0, "b": 0.0}).fit(X, y).log_evidence() == -math.inf


def test_one_row_one_class_and_no_known_cell():
    single = tb.NaiveBayes({"x": tb.Poisson()}, prior=tb.Gamma(2, 1)).fit({"x": [3]}, ["only"])
    assert single.log_evidence() == pytest.approx(tb.fit_distribution([3], tb.Poisson()).log_evidence(tb.Gamma(2, 1)))
    missing = tb.NaiveBayes({"x": tb.Gaussian(), "z": tb.Poisson()}).fit({"x": [np.nan] * 3, "z": [1, 2, 3]}, [0, 1, 1])
    assert missing.log_evidence() == tb.NaiveBayes({"z": tb.Poisson()}).fit({"z": [1, 2, 3]}, [0, 1, 1]).log_evidence()


@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical"])
def test_constant_columns_are_left_out(covariance):
    X = rng.normal(size=(30, 3)) + 1e3
    X[:, 1] = 7.0
    prior = tb.GaussianDiscriminant(covariance).fit(X, Y).prior_[0, 1, 2]
    model = tb.GaussianDiscriminant(covariance).fit(X, Y)
    # those of the other two columns alone, under the same belief about them
    if covariance in ("full", "tied"):
        scale = prior.scale[..., [[0], [2]], [0, 2]]
        belief = tb.NormalInverseWishart(prior.location[..., [0, 2]], 0.01, prior.degrees_of_freedom - 1, scale)
    else:
        kept = [0, 2] if prior.scale.shape[-1] == 3 else [0]
        belief = tb.NormalInverseGamma(prior.location[[0, 2]], 0.01, 1.5, prior.scale[kept])
    others = tb.GaussianDiscriminant(covariance, prior=belief).fit(X[:, [0, 2]], Y)
    assert model.log_evidence() == pytest.approx(others.log_evidence(), rel=1e-11)


def test_offsets_and_units():
    X = rng.normal(size=(40, 2))
    y = rng.integers(0, 2, 40)
    for make in (tb.NaiveBayes, tb.GaussianDiscriminant):
        near, far = make().fit(X, y).log_evidence(), make().fit(X + 2.0**30, y).log_evidence()
        assert far == pytest.approx(near, rel=1e-7)
        assert make().fit(X * 1000, y).log_evidence() == pytest.approx(near - 80 * math.log(1000), rel=1e-10)


def test_what_has_no_evidence_says_so():
    X, y = load_iris(return_X_y=True)
    shrunk = tb.GaussianDiscriminant(shrinkage=0.5).fit(X, y)
    with pytest.raises(EstimateError, match=r"shrinkage=0.5 has no evidence.*\n.*reestimate"):
        shrunk.log_evidence()
    assert shrunk.reestimate(shrinkage=0).log_evidence() == shrunk.reestimate(shrinkage=None).log_evidence()
    X[3, 1] = np.nan
    with pytest.raises(EstimateError, match=r"EM filled in.*\n.*labeled rows"):
        tb.GaussianDiscriminant().fit(X, y).log_evidence()
    with pytest.raises(NotFittedError):
        tb.NaiveBayes().log_evidence()


# ---- Comparisons --------------------------------------------------------------------------------------------------


def correlated(tied, n=200, seed=5):
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, n)
    mix = np.array([[1.0, 0.0], [0.9, 0.4]])
    X = draw.normal(size=(n, 2)) @ mix.T
    if not tied:
        X[y == 1] *= [1.0, -3.0]
    return X + y[:, None], y


FORMS = ("full", "tied", "diagonal", "tied_diagonal")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("tied", "best"), [(True, "tied"), (False, "full")])
def test_the_structure_that_made_the_data_wins(tied, best):
    X, y = correlated(tied)
    first = tb.GaussianDiscriminant().fit(X, y)
    models = {form: first.reestimate(covariance=form) for form in FORMS} | {"naive": tb.NaiveBayes().fit(X, y)}
    found = tb.compare(models)
    assert found.best == best
    assert found.bayes_factor("naive", "diagonal") == pytest.approx(0.0, abs=1e-9)  # the same model
    for one in models:
        assert found.description_length[one] == pytest.approx(-models[one].log_evidence() / math.log(2), rel=1e-12)
        for other in models:
            expected = (models[one].log_evidence() - models[other].log_evidence()) / math.log(2)
            assert found.bayes_factor(one, other) == pytest.approx(expected, abs=1e-9)
    assert sum(found.probabilities.values()) == pytest.approx(1.0)
    assert list(found.description_length.values()) == sorted(found.description_length.values())
    assert found.n_parameters == {name: models[name].n_parameters_ for name in found.description_length}


def test_probabilities_are_two_to_the_bits():
    X, y = correlated(True, n=12)
    first = tb.GaussianDiscriminant().fit(X, y)
    found = tb.compare([first.reestimate(covariance=form) for form in FORMS])
    odds = found.probabilities[0] / found.probabilities[2]
    assert math.log2(odds) == pytest.approx(found.bayes_factor(0, 2), rel=1e-9)


@pytest.mark.parametrize(
    ("factor", "words"),
    [(2.9, "bare mention"), (3.1, "positive"), (19, "positive"), (21, "strong"), (149, "strong"), (151, "very strong")],
)
def test_readings_are_those_of_kass_and_raftery(factor, words):
    found = tb.results.Comparison({"a": 0.0, "b": -math.log(factor)}, {"a": 3, "b": 5}, 100.0)
    text = found.interpretation("b", "a")
    assert text.startswith("a against b")
    assert words in text
    assert ("very" in text) == ("very" in words)
    assert f"{math.log2(factor) / 100:.3g} bits a row" in text
    assert words in repr(found)


def test_tables():
    found = tb.compare(
        {
            "p": tb.NaiveBayes().fit([[1.0], [2.0], [4.0]], [0, 1, 1]),
            "q": tb.NaiveBayes(tb.TiedGaussian()).fit([[1.0], [2.0], [4.0]], [0, 1, 1]),
        }
    )
    frame = found.to_frame()
    assert list(frame["model"]) == list(found.description_length)
    assert frame["excess_loss"][0] == 0
    np.testing.assert_allclose(frame["bits"], list(found.description_length.values()))
    lines = repr(found).splitlines()
    assert "2 models of 3 rows" in lines[0]
    assert lines[2].split()[0] == found.best
    with pytest.raises(DataError, match=r"no model 'r'.*'p'"):
        found.bayes_factor("p", "r")


def model(columns=None, rows=ROWS, y=Y, **options):
    wanted = {key: COLUMNS[key] for key in ("calls", "price", "age")} if columns is None else columns
    return tb.NaiveBayes(wanted).fit(rows, y, **options)


OTHER = {**ROWS, "price": ROWS["price"] * 2, "calls": np.where(ROWS["calls"] == 3, 4.0, ROWS["calls"])}
KNOWN = {**ROWS, "age": np.nan_to_num(ROWS["age"])}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (lambda: model({"calls": tb.Poisson(), "price": tb.LogNormal()}), "only 0 has the columns 'age'"),
        (lambda: model({**COLUMNS}), "only 1 has the columns"),
        (lambda: model(rows=some(ROWS, slice(0, 29)), y=Y[:29]), "class .* has weight"),
        (lambda: model(sample_weight=np.full(N, 2.0)), "class .* has weight"),
        (lambda: model(y=np.where(Y == "c", "d", Y)), "only 0 has the classes 'c'"),
        (lambda: model(rows=KNOWN), "known cells of column 'age' have weight 29 and 30"),
        (lambda: model(rows=OTHER), "column 'calls' has other values"),
        (lambda: model({"calls": tb.Gaussian(), "price": tb.LogNormal(), "age": tb.Gaussian()}, OTHER), "'calls' has"),
        (lambda: model(y=np.roll(Y, 1)), "known cells of column|other values"),
    ],
)
def test_other_rows_are_refused(other, why):
    with pytest.raises(StatisticsError, match=rf"(?s)cannot compare models 0 and 1: .*{why}.*same rows"):
        tb.compare([model(), other()])


def test_other_families_are_not_other_rows():
    kinds = [tb.Gaussian(), tb.LogNormal(), tb.Binned((0, 1, 30))]
    whole = {"calls": [tb.Poisson(), tb.Gaussian(), tb.Categorical(), tb.Binned((-0.5, 3.5, 20.5))]}
    for family in kinds:
        tb.compare([model(), model({"calls": tb.Poisson(), "price": family, "age": tb.Gaussian()})])
    for family in whole["calls"]:
        tb.compare([model(), model({"calls": family, "price": tb.LogNormal(), "age": tb.Gaussian()})])
    binary = {"windy": ROWS["windy"]}
    families = [tb.Bernoulli(), tb.Categorical(), tb.Poisson(), tb.Binomial(1), tb.Gaussian()]
    found = tb.compare({repr(f): tb.NaiveBayes({"windy": f}).fit(binary, Y) for f in families})
    assert found.bayes_factor("Bernoulli()", "Categorical()") == pytest.approx(0.0, abs=1e-9)
    assert found.bayes_factor("Bernoulli()", "Binomial(1)") == pytest.approx(0.0, abs=1e-9)
    assert found.mixed == ["windy"]
    assert "probabilities compared to densities" in repr(found)
    assert tb.compare([model(), model()]).mixed == []


def test_the_family_that_made_the_column_wins():
    draw = np.random.default_rng(1)
    y = draw.integers(0, 2, 300)
    prices = {"x": np.exp(draw.normal(y, 1.0))}
    heights = {"x": draw.normal(10.0 + y, 1.0)}
    for rows, best in ((prices, "LogNormal()"), (heights, "Gaussian()")):
        fitted = {repr(f): tb.NaiveBayes({"x": f}).fit(rows, y) for f in (tb.Gaussian(), tb.LogNormal())}
        assert tb.compare(fitted).best == best


def test_constant_columns_are_left_out_of_all():
    rows = {"x": [1.0, 2.0, 4.0, 3.0], "k": [5, 5, 5, 5]}
    y = [0, 1, 0, 1]
    gauss = tb.NaiveBayes({"x": tb.Gaussian(), "k": tb.Gaussian()}).fit(rows, y)
    count = tb.NaiveBayes({"x": tb.Gaussian(), "k": tb.Poisson()}).fit(rows, y)
    found = tb.compare({"gauss": gauss, "count": count})
    assert found.excluded_columns == ["k"]
    assert found.bayes_factor("gauss", "count") == pytest.approx(0.0, abs=1e-12)
    assert "left out of all" in repr(found)
    block = {"x": np.array([[1.0, 5.0], [2.0, 5.0], [0.0, 5.0], [4.0, 5.0]])}
    whole = tb.NaiveBayes({"x": tb.Multinomial()}).fit(block, y)
    with pytest.raises(EstimateError, match="not a sum over columns"):
        tb.compare([whole, tb.NaiveBayes({"x": tb.Gaussian()}).fit(block, y)])


@pytest.mark.parametrize(
    "models", [[], {}, [tb.NaiveBayes().fit([[1.0], [2.0]], [0, 1])]], ids=["none", "empty", "one"]
)
def test_at_least_two(models):
    with pytest.raises(DataError, match="at least two fitted models"):
        tb.compare(models)


def test_what_is_no_model():
    fitted = tb.NaiveBayes().fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(DataError, match=r"model 'b' is NearestClassMean.*NaiveBayes"):
        tb.compare({"a": fitted, "b": tb.NearestClassMean().fit([[1.0], [2.0]], [0, 1])})
    with pytest.raises(NotFittedError):
        tb.compare([fitted, tb.NaiveBayes()])
    never = tb.NaiveBayes(class_prior={0: 1.0, 1: 0.0}).fit([[1.0], [2.0]], [0, 1])
    assert tb.compare({"never": never, "fine": fitted}).probabilities == {"fine": 1.0, "never": 0.0}
    with pytest.raises(EstimateError, match="probability 0"):
        tb.compare([never, never])


def test_open_bins_against_others_are_named():
    rng = np.random.default_rng(5)
    rows, y = {"x": np.exp(rng.normal(0, 2, 90)), "z": rng.normal(size=90)}, rng.integers(0, 2, 90)
    opened = tb.NaiveBayes({"x": tb.Binned((None, 1, 2, None)), "z": "auto"}).fit(rows, y)
    closed = tb.NaiveBayes().fit(rows, y)
    found = tb.compare({"opened": opened, "closed": closed})
    assert found.open_bins == ["x"]
    assert repr(found).splitlines()[-1].endswith("as wide as their neighbors: x")
    assert tb.compare([opened, opened]).open_bins == []
