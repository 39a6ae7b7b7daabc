"""Where EM sets out: another model, what was learnt before, a prior of known tables, or several starts."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LETTERS = {"x": {"a": 0.1, "b": 0.9}, "y": {"a": 0.8, "b": 0.2}}
MOVES = {"x": {"x": 0.7, "y": 0.3}, "y": {"x": 0.4, "y": 0.6}}
STEPS = [list(steps) for steps in ("aabba", "bbbab", "abbbb")]
CAUSES = {"sign": ["cause"], "mark": ["cause"]}
LEVELS = {"cause": [0, 1], "sign": ["no", "yes"], "mark": ["no", "yes"]}
TABLES = {"cause": [0.4, 0.6], "sign": [[0.9, 0.1], [0.2, 0.8]], "mark": [[0.7, 0.3], [0.1, 0.9]]}


def chain(**options):
    return tb.HiddenMarkovModel.from_tables({"x": 0.5, "y": 0.5}, MOVES, LETTERS, **options)


def heaps():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(0, 1, 60), rng.normal(5, 2, 60)])[:, None]


def signs(n=40):
    rng = np.random.default_rng(1)
    cause = rng.random(n) < 0.6
    rows = {name: np.where(rng.random(n) < np.where(cause, p, q), "yes", "no") for name, p, q in (
        ("sign", 0.8, 0.1), ("mark", 0.9, 0.3)
    )}  # fmt: skip
    return {name: column.astype(object) for name, column in rows.items()}


def hidden(**options):
    return tb.BayesianNetwork(CAUSES, columns={"cause": tb.Categorical([0, 1])}, missing="em", **options)


KINDS = {
    "chain": (lambda **o: tb.HiddenMarkovModel(2, tb.Categorical(), **o), STEPS),
    "mixture": (lambda **o: tb.Mixture(2, tb.Gaussian(), **o), heaps()),
    "network": (lambda **o: hidden(**o), signs()),
}


@pytest.fixture(params=list(KINDS))
def kind(request):
    return KINDS[request.param]


# ---- What was learnt before -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimate", ["mle", "map"])
def test_to_set_out_again_goes_on_where_it_ended(kind, estimate):
    make, rows = kind
    settings = {"estimate": estimate, "random_state": 0, "tol": 1e-12}
    model = make(max_iter=4, warm_start=True, **settings).fit(rows)
    first = model.history_
    again = make(max_iter=4, **settings).fit(rows, initial=model)
    model.fit(rows)
    assert model.history_ == again.history_  # as if it were another one's
    if estimate == "mle":  # default priors of measured columns are found from where it sets out
        assert model.history_[0] >= first[-1] - 1e-9
    assert len(model.objectives_) == 1
    cold = make(max_iter=4, **settings).fit(rows).fit(rows)
    assert cold.history_ == first


def with_a_constant(name, family):
    """A model of columns of which the second is the same in every row, fitted from one like it."""
    rows = np.c_[heaps(), np.full(120, 7.0), heaps()[::-1] * 0.1 + np.sin(np.arange(120))[:, None]]
    settings = {"estimate": "map", "random_state": 0, "max_iter": 5}
    if name == "network":
        names = ["x", "same", "y"]
        columns = {"cause": tb.Categorical([0, 1])} | dict.fromkeys(names, tb.Gaussian())
        data = dict(zip(names, rows.T, strict=True))
        parents = {k: ["cause"] for k in names}
        models = [tb.BayesianNetwork(parents, columns=columns, missing="em", **settings) for _ in range(2)]
    else:
        make = {"chain": tb.HiddenMarkovModel, "mixture": tb.Mixture}[name]
        data = [rows[:60], rows[60:]] if name == "chain" else rows
        models = [make(2, family, **settings) for _ in range(2)]
    return models[1].fit(data, initial=models[0].fit(data))


@pytest.mark.parametrize("estimate", ["map", "bayes"])
def test_a_column_that_is_the_same_in_every_row_is_left_out_from_the_first_step(estimate):
    """The start had −inf for an objective: its log prior was not known."""
    x, same = heaps()[:, 0], np.full(120, 7.0)
    known = {"x": [{"mean": -1, "variance": 2}, {"mean": 6, "variance": 3}]}
    also = known | {
        "same": [{"mean": 7, "variance": 1}, {"mean": 9, "variance": 1}]
    }  # which would tell, if it were asked
    chains, mixtures = [], []
    for told, data in ((also, {"x": x, "same": same}), (known, {"x": x})):
        emission = {name: dict(enumerate(each)) for name, each in told.items()}
        start = tb.HiddenMarkovModel.from_tables([0.5, 0.5], [[0.8, 0.2], [0.4, 0.6]], emission)
        chains.append(tb.HiddenMarkovModel(2, estimate=estimate, max_iter=5).fit([data], initial=start))
        start = tb.Mixture.from_parameters(told, [0.5, 0.5])
        mixtures.append(tb.Mixture(2, estimate=estimate, max_iter=5).fit(data, initial=start))
    for found, bare in (chains, mixtures):
        np.testing.assert_allclose(found.history_, bare.history_, rtol=1e-12)  # as if it were not there
        assert (np.diff(found.history_) > -1e-9).all()


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", ["chain", "mixture", "network"])
@pytest.mark.parametrize("family", [tb.MultivariateGaussian(), tb.TiedMultivariateGaussian(), tb.TiedGaussian()])
def test_so_is_one_of_several_that_vary_together(family, name):
    found = with_a_constant(name, family)
    assert np.isfinite(found.history_).all()
    assert (np.diff(found.history_) > -1e-9).all()


def test_to_set_out_again_is_true_or_false(kind):
    make, rows = kind
    with pytest.raises(tb.EstimateError, match="warm_start is 'yes'; expected True or False"):
        make(warm_start="yes").fit(rows)


# ---- Several starts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimate", ["mle", "bayes"])
def test_all_objectives_are_reported_and_the_best_is_kept(kind, estimate, tmp_path):
    make, rows = kind
    model = make(estimate=estimate, n_init=3, random_state=3, max_iter=20).fit(rows)
    twice = estimate == "mle" and isinstance(model, tb.BayesianNetwork)  # others only if a run ends at a boundary
    assert len(model.objectives_) == (6 if twice else 3)
    assert max(model.objectives_) == model.history_[-1]
    model.save(tmp_path / "model.tally")
    assert tb.load(tmp_path / "model.tally").objectives_ == model.objectives_


@pytest.mark.slow
def test_more_starts_end_no_lower():
    rng = np.random.default_rng(0)
    names = list("uvwx")
    rows = {name: rng.choice(["no", "yes", "maybe"], 50).astype(object) for name in names}
    columns, parents = {"cause": tb.Categorical(range(4))}, {name: ["cause"] for name in names}
    options = {"columns": columns, "missing": "em", "estimate": "mle", "max_iter": 30, "random_state": 0}
    one, many = (tb.BayesianNetwork(parents, n_init=n, **options).fit(rows) for n in (1, 4))
    assert many.objectives_[:2] == one.objectives_
    assert many.history_[-1] > one.history_[-1]


def test_a_network_with_nothing_hidden_starts_at_other_labels_in_place_of_missing_ones():
    rows = {name: column.copy() for name, column in signs().items()} | {"cause": np.arange(40) % 2}
    rows["sign"][:5] = None
    one, several = (hidden(n_init=n, random_state=0, tol=1e-9).fit(rows) for n in (1, 5))
    assert several.objectives_[0] == one.objectives_[0]
    assert len(several.objectives_) == 5
    np.testing.assert_allclose(several.objectives_, one.objectives_[0], atol=1e-4)  # so few leave one top
    assert len({round(objective, 12) for objective in several.objectives_}) > 1
    assert len(hidden(n_init=5).fit(rows | {"sign": signs()["sign"]}).history_) == 0


def test_columns_are_read_as_the_start_has_them():
    steps = [np.array([ord(letter) - ord("a") for letter in sequence]) for sequence in STEPS]
    known = tb.HiddenMarkovModel.from_tables([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], [[0.1, 0.9], [0.8, 0.2]])
    plain = tb.HiddenMarkovModel(2).fit(steps, initial=known)
    said = tb.HiddenMarkovModel(2, tb.Categorical([0, 1])).fit(steps, initial=known)
    assert plain.history_ == said.history_
    assert plain.get_params()["columns"] == "auto"
    counts = np.random.default_rng(0).poisson(3, (50, 2))
    first = tb.Mixture(2, tb.Poisson(), random_state=0).fit(counts)
    again = tb.Mixture(2).fit(counts, initial=first)
    assert again.columns_ == first.columns_
    with pytest.raises(DataError, match="initial= has no column 2, which these rows have"):
        tb.Mixture(2).fit(np.column_stack([counts, counts[:, :1]]), initial=first)


def test_a_start_that_failed_is_reported():
    from tallybayes.estimation.em.em_loop import run_em_restarts

    def fail():
        raise tb.EstimateError("a group fell in on few rows")

    done = run_em_restarts(
        [fail, lambda: 1.0], lambda heads: (heads / 5, 0.0), lambda p: (2 + 2 * p, np.log(p)), max_iter=2, tol=1e-9
    )
    assert np.isnan(done.objectives[0])
    assert done.objectives[1] == done.history[-1]


# ---- Networks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
def test_a_network_starts_at_known_tables(estimate):
    rows = signs()
    known = tb.BayesianNetwork.from_tables(CAUSES, LEVELS, TABLES)
    model = hidden(estimate=estimate, max_iter=30).fit(rows, initial=known)
    if estimate == "mle":
        assert model.history_[0] == pytest.approx(known.log_likelihood(rows))
    assert (np.diff(model.history_) > -1e-9).all()
    sign = model.cpt("sign")
    assert sign[1, "yes"] > sign[0, "yes"]  # and not the other way round
    swapped = {name: np.array(table)[::-1] for name, table in TABLES.items()}
    other = hidden(estimate=estimate, max_iter=30).fit(
        rows, initial=tb.BayesianNetwork.from_tables(CAUSES, LEVELS, swapped)
    )
    np.testing.assert_allclose(other.history_, model.history_)
    np.testing.assert_allclose(other.cpt("sign").values[::-1], sign.values)


def test_levels_in_another_order_and_measured_leaves():
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 2, 60)
    rows = {"cause": np.where(np.arange(60) < 20, np.array(["u", "v"], dtype=object)[cause], None)}
    rows["size"] = rng.normal(4.0 * cause, 1.0)
    full = {"cause": np.array(["v", "u"], dtype=object)[cause], "size": rows["size"]}

    def network(levels, **options):
        return tb.BayesianNetwork({"size": ["cause"]}, columns={"cause": tb.Categorical(levels)}, **options)

    known = network(["v", "u"], estimate="mle").fit(full)  # whose u is large
    model = network(["u", "v"], estimate="mle", missing="em", max_iter=1).fit(rows, initial=known)
    expected = known.log_likelihood(rows)
    assert model.history_[0] == pytest.approx(expected)


def test_networks_that_do_not_fit_are_refused_by_name():
    rows, known = signs(), tb.BayesianNetwork.from_tables(CAUSES, LEVELS, TABLES)
    with pytest.raises(tb.DataError, match="initial is Mixture; expected a BayesianNetwork"):
        hidden().fit(rows, initial=tb.Mixture(2).fit(heaps()))
    chained = tb.BayesianNetwork({"sign": ["cause"], "mark": ["sign"]}, columns={"cause": tb.Categorical([0, 1])},
                                 missing="em")  # fmt: skip
    with pytest.raises(
        tb.DataError, match=r"initial= has given \('cause',\), .* for 'mark'; expected given \('sign',\)"
    ):
        chained.fit(rows, initial=known)
    more = {"sign": np.append(rows["sign"], "never"), "mark": np.append(rows["mark"], "no")}
    with pytest.raises(tb.LabelError, match="initial= has no level 'never' of 'sign'"):
        hidden().fit(more, initial=known)
    sure = TABLES | {"sign": [[1.0, 0.0], [1.0, 0.0]]}
    with pytest.raises(tb.DataError, match="impossible under initial="):
        hidden().fit(rows, initial=tb.BayesianNetwork.from_tables(CAUSES, LEVELS, sure))


def test_a_level_that_the_start_does_not_know_is_refused_by_name():
    """It had the probability 0, and sequences with it were left out of the first step without a word."""
    with pytest.raises(tb.LabelError, match="initial= has no level 'c' of '0'"):
        tb.HiddenMarkovModel(columns=tb.Categorical()).fit([*STEPS, ["c"]], initial=chain())


# ---- A prior of known tables ----------------------------------------------------------------------------------------


def test_a_prior_of_tables_is_where_em_begins_and_what_it_climbs_under():
    known = chain()
    model = chain(strength=10, max_iter=500, tol=1e-12)
    assert model.warm_start
    prior = model.prior
    model.fit(STEPS)
    assert model.states_.tolist() == ["x", "y"]  # it keeps their names
    start_log_prior = sum(
        float(np.sum(belief.mode_matched().log_prob(table)))
        for belief, table in (
            (prior["start"], known.start_), (prior["transition"], known.transition_),
            (prior["emission"][0], np.stack(list(known.emission_[0].values()), axis=-1)),
        )
    )  # fmt: skip
    assert model.history_[0] == pytest.approx(known.log_likelihood(STEPS) + start_log_prior)
    assert (np.diff(model.history_) > -1e-9).all()
    counts = model.tally_["to"].table + prior["transition"].concentration  # ten seen before, and those expected
    np.testing.assert_allclose(model.transition_, counts / counts.sum(axis=1, keepdims=True))
    firm = chain(strength=1e6).fit(STEPS)
    np.testing.assert_allclose(firm.transition_, known.transition_, atol=1e-4)
    loose = chain(strength=4).fit(STEPS)
    far = np.abs([m.transition_ - known.transition_ for m in (firm, model, loose)]).max(axis=(1, 2))
    assert far[0] < far[1] < far[2]


def test_a_prior_of_parameters_serves_a_mixture():
    X = heaps()
    model = tb.Mixture.from_parameters(
        {0: [{"mean": 6, "variance": 4}, {"mean": -1, "variance": 1}]}, [0.5, 0.5], strength=20
    )
    model.fit(X)
    assert model.parameter_table(0)[0]["mean"] > 4 > 1 > model.parameter_table(0)[1]["mean"]
    assert len(model.objectives_) == 1
