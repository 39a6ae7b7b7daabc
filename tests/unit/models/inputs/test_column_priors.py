"""Priors by column: arrays by column of one block, in every model; a Beta for columns of two labels."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import tallybayes as tb
from tallybayes.errors import PriorError

rng = np.random.default_rng(0)
N = 40
Y = np.where(rng.random(N) < 0.5, "u", "v")
BOOLS = {"a": rng.random(N) < 0.3, "b": rng.random(N) < 0.8}
WORDS = {"a": np.where(BOOLS["a"], "yes", "no"), "b": np.where(BOOLS["b"], "yes", "no")}
ZERO_ONE = {name: column.astype(int) for name, column in BOOLS.items()}
NUMBERS = {"a": rng.normal(size=N), "b": rng.normal(5.0, 2.0, N)}
BETAS = {"a": tb.Beta(3, 2), "b": tb.Beta(2, 5)}
NORMALS = {"a": tb.NormalInverseGamma(0, 1, 2, 1), "b": tb.NormalInverseGamma(5, 2, 3, 4)}
BERNOULLIS = {"a": tb.Bernoulli(), "b": tb.Bernoulli()}

CASES = {
    "Bernoulli": (ZERO_ONE, BERNOULLIS, BETAS),
    "booleans": (BOOLS, "auto", BETAS),
    "yes and no": (WORDS, "auto", BETAS),
    "integers as labels": (ZERO_ONE, tb.Categorical(), BETAS),
    "Dirichlet": (WORDS, "auto", {"a": tb.Dirichlet(0.3), "b": tb.Dirichlet(4)}),
    "one column named": (WORDS, "auto", {"b": tb.Dirichlet(4)}),
    "rules": (WORDS, "auto", {"a": tb.K2(), "b": tb.BDeu(3)}),
    "Gaussian": (NUMBERS, "auto", NORMALS),
    "Poisson": (ZERO_ONE, tb.Poisson(), {"a": tb.Gamma(2, 1), "b": tb.Gamma(5, 3)}),
}


@pytest.mark.parametrize("estimate", ["bayes", "map"])
@pytest.mark.parametrize("name", CASES)
def test_columns_are_estimated_as_by_themselves(name, estimate):
    table, columns, prior = CASES[name]
    together = tb.NaiveBayes(columns, prior=prior, estimate=estimate).fit({**table, "y": Y}, "y")
    for column in table:
        alone = {column: table[column], "y": Y}
        family = columns[column] if isinstance(columns, dict) else columns
        own = {column: prior[column]} if column in prior else None
        if own is None:
            continue
        one = tb.NaiveBayes({column: family} if family == tb.Bernoulli() else family, prior=own, estimate=estimate)
        one.fit(alone, "y")
        np.testing.assert_allclose(
            together.parameter_table(column).values, one.parameter_table(column).values, rtol=1e-12
        )


@pytest.mark.parametrize("table", [ZERO_ONE, BOOLS, WORDS], ids=["Bernoulli", "booleans", "words"])
@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_a_beta_means_the_same_for_labels_of_every_type(table, estimate):
    columns = BERNOULLIS if table is ZERO_ONE else "auto"
    model = tb.NaiveBayes(columns, prior=BETAS, estimate=estimate).fit({**table, "y": Y}, "y")
    known = {}
    for name, beta in BETAS.items():
        for label in ("u", "v"):
            some = BOOLS[name][label == Y]
            posterior = tb.Beta(beta.alpha + some.sum(), beta.beta + (~some).sum())
            known[name, label] = posterior.mean() if estimate == "bayes" else posterior.mode()
    rows = {name: column[:1] for name, column in table.items()}
    log_odds = np.diff(model.predict_joint_log_proba(rows)[0])[0] - np.diff(model.class_log_prior_)[0]
    expected = 0.0
    for name in BETAS:
        p = np.array([known[name, label] for label in ("u", "v")])
        expected += np.diff(np.log(p if BOOLS[name][0] else 1 - p))[0]
    assert log_odds == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [
        tb.Mixture(2, BERNOULLIS, prior=BETAS, random_state=0, max_iter=30),
        tb.Mixture(2, BERNOULLIS, prior=BETAS, random_state=0, max_iter=30, estimate="map"),
        tb.HiddenMarkovModel(2, BERNOULLIS, prior=BETAS, random_state=0, max_iter=30),
    ],
    ids=["Mixture", "Mixture, map", "HiddenMarkovModel"],
)
def test_em_never_lowers_the_objective(model):
    found = clone(model).fit([ZERO_ONE] if isinstance(model, tb.HiddenMarkovModel) else ZERO_ONE)
    assert (np.diff(found.history_) > -1e-9).all()
    assert any(belief == tb.Beta([3, 2], [2, 5]) for belief in found.prior_.values())


def test_saved_models_keep_their_priors(tmp_path):
    model = tb.NaiveBayes(prior=BETAS).fit({**BOOLS, "y": Y}, "y")
    model.save(tmp_path / "model.tally")
    again = tb.load(tmp_path / "model.tally")
    assert again.prior == BETAS
    np.testing.assert_array_equal(again.predict_proba(BOOLS), model.predict_proba(BOOLS))


ROADS = {"rain": [True, False, True, True], "wet": ["y", "n", "y", "n"], "road": ["a", "b", "c", "a"]}


class TestNetworks:
    def fitted(self, prior, **settings):
        return tb.BayesianNetwork({"wet": ["rain"], "road": ["rain"]}, prior=prior, **settings).fit(ROADS)

    def test_binary_nodes_take_a_beta(self):
        model = self.fitted({"rain": tb.Beta(3, 2), "wet": tb.Beta(1, 4)})
        assert model.query("rain")[True] == pytest.approx((3 + 3) / (4 + 5))
        assert model.query("wet", given={"rain": True})["y"] == pytest.approx((2 + 1) / (3 + 5))
        top = self.fitted({"rain": tb.Beta(3, 2)}, estimate="map")
        assert top.query("rain")[True] == pytest.approx((3 + 2) / (4 + 3))

    def test_one_beta_is_for_all_binary_nodes(self):
        model, default = self.fitted(tb.Beta(2, 7)), self.fitted(None)
        assert model.query("rain")[True] == pytest.approx((3 + 2) / (4 + 9))
        assert model.prior_["road"] == default.prior_["road"]

    def test_other_nodes_reject_it(self):
        wrong = r"'road' is Beta\(2, 7\), which is for two levels; found \['a', 'b', 'c'\]"
        with pytest.raises(PriorError, match=wrong):
            self.fitted({"road": tb.Beta(2, 7)}).query("rain")

    def test_declared_levels_give_the_order(self):
        columns = {"wet": tb.Categorical(levels=("y", "n"))}
        model = tb.BayesianNetwork({"wet": ["rain"]}, columns=columns, prior={"wet": tb.Beta(9, 1)})
        model.fit({name: ROADS[name] for name in ("rain", "wet")})
        assert model.query("wet", given={"rain": False})["n"] == pytest.approx((1 + 9) / (1 + 10))


def test_joint_blocks_reject_priors_by_column():
    with pytest.raises(PriorError, match="one block of Multinomial"):
        tb.NaiveBayes(tb.Multinomial(), prior={0: tb.Dirichlet(1), 1: tb.Dirichlet(2)}).fit([[1, 2], [3, 4]], [0, 1])


@pytest.mark.parametrize("levels", ["abc", "ab"])
@pytest.mark.parametrize(
    "fit",
    [
        lambda prior, rows: tb.NaiveBayes(prior=prior).fit(rows, "y"),
        lambda prior, rows: tb.NaiveBayes(prior=prior, estimate="map").fit(rows, "y"),
        lambda prior, rows: tb.NaiveBayes().fit(rows, "y").set_params(prior=prior),
        lambda prior, rows: tb.NaiveBayes().fit(rows, "y").reestimate(prior=prior),
        lambda prior, rows: tb.AveragedOneDependence(prior=prior).fit(rows, "y"),
        lambda prior, rows: tb.Mixture(2, prior=prior).fit(rows[["x", "k"]]),
        lambda prior, rows: tb.BayesianNetwork({"k": ["m"]}, prior=prior).fit(rows),
    ],
    ids=["fit", "map", "set_params", "reestimate", "pairs", "mixture", "network"],
)
def test_a_beta_needs_a_binary_column(fit, levels):
    rng = np.random.default_rng(0)
    k = np.array(list(levels))[rng.integers(len(levels), size=60)]
    rows = pd.DataFrame(
        {"x": rng.normal(size=60), "k": k, "m": rng.choice(list("uvw"), 60), "y": rng.integers(5, size=60)}
    )
    for prior in (tb.Beta(2, 2), [tb.Beta(2, 2), None]):
        if levels == "ab":
            fit(prior, rows)
        else:
            with pytest.raises(
                tb.PriorError, match=r"Beta\(2, 2\), which is for binary columns; found none \(.*'k' with 3"
            ):
                fit(prior, rows)
