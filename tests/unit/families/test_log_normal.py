"""Log-normal columns: against scipy's lognorm, the Gaussian of the logarithms, and the chain rule."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.families.protocols.cell_checks import first_invalid_cell
from tallybayes.families.protocols.display import plot_grid

rng = np.random.default_rng(7)
PRICES = np.exp(rng.normal([1.0, -2.0, 6.0], [0.5, 1.0, 0.2], (40, 3)))
PRIOR = tb.NormalInverseGamma(0.5, 0.7, 2.5, 3.0)


def test_likelihood_is_scipy_s():
    learned = tb.fit_distribution(PRICES, tb.LogNormal())
    mean, variance = learned.estimate("mle")
    np.testing.assert_allclose(mean, np.log(PRICES).mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(variance, np.log(PRICES).var(axis=0), rtol=1e-12)
    cells = stats.lognorm.logpdf(PRICES, s=np.sqrt(variance), scale=np.exp(mean))
    np.testing.assert_allclose(learned.log_likelihood((mean, variance)), cells.sum(axis=0), rtol=1e-12)
    found = tb.LogNormal().log_prob(learned.estimate("mle"), PRICES)
    np.testing.assert_allclose(found, cells, rtol=1e-12, atol=1e-12)


def test_unbiased_divides_by_one_less():
    found = tb.fit_distribution(PRICES[:, 0], tb.LogNormal()).estimate("unbiased")
    assert found.variance == pytest.approx(np.log(PRICES[:, 0]).var(ddof=1), rel=1e-12)


def test_predictive_is_the_t_of_the_logarithm_over_x():
    learned = tb.fit_distribution(PRICES[:, 0], tb.LogNormal())
    posterior = PRIOR.update(tb.Moments.of(np.log(PRICES[:, :1])))
    scale = np.sqrt(posterior.scale / posterior.shape * (1 + 1 / posterior.strength))
    new = np.array([1e-3, 0.5, 2.0, 900.0])
    expected = stats.t.logpdf(np.log(new), 2 * posterior.shape, posterior.location, scale) - np.log(new)
    np.testing.assert_allclose(learned.predictive(PRIOR).log_prob(new), expected, rtol=1e-12)


def test_evidence_is_the_chain_rule():
    total = sum(
        tb.fit_distribution(PRICES[:n, 0], tb.LogNormal()).predictive(PRIOR).log_prob(PRICES[n, 0])
        for n in range(len(PRICES))
    )
    learned = tb.fit_distribution(PRICES[:, 0], tb.LogNormal())
    assert learned.log_evidence(PRIOR) == pytest.approx(total, rel=1e-11)
    assert learned.description_length(PRIOR).evidence == pytest.approx(-total / np.log(2), rel=1e-11)
    # that of the logarithms, less the Jacobian
    logs = tb.fit_distribution(np.log(PRICES[:, 0]), tb.Gaussian()).log_evidence(PRIOR)
    assert learned.log_evidence(PRIOR) == pytest.approx(logs - np.log(PRICES[:, 0]).sum(), rel=1e-12)


def test_evidence_of_groups_columns_and_weights():
    group, weight = rng.integers(0, 3, 40), rng.integers(0, 3, 40).astype(float)
    holes = np.where(rng.random(PRICES.shape) < 0.2, np.nan, PRICES)
    learned = tb.fit_distribution(holes, tb.LogNormal(), group=group, weight=weight)
    assert learned.log_evidence(PRIOR).shape == (3, 3)
    for g in range(3):
        for column in range(3):
            mine = np.repeat(holes[group == g, column], weight[group == g].astype(int))
            alone = tb.fit_distribution(mine, tb.LogNormal()).log_evidence(PRIOR)
            assert learned.log_evidence(PRIOR)[g, column] == pytest.approx(alone, rel=1e-11)


def test_hypotheses_count_the_jacobian_once():
    guesses = tb.Hypotheses({"small": (0.0, 1.0), "large": (2.0, 1.0)})
    learned = tb.fit_distribution(PRICES[:, 0], tb.LogNormal())
    likelihoods = [learned.log_likelihood(p) for p in ((0.0, 1.0), (2.0, 1.0))]
    assert learned.log_evidence(guesses) == pytest.approx(np.logaddexp(*likelihoods) - np.log(2), rel=1e-12)


def test_the_unit_of_a_column_changes_no_prediction():
    y = rng.integers(0, 2, 40)
    first = tb.NaiveBayes(tb.LogNormal()).fit(PRICES, y)
    second = tb.NaiveBayes(tb.LogNormal()).fit(PRICES * 1e9, y)
    np.testing.assert_allclose(first.predict_proba(PRICES), second.predict_proba(PRICES * 1e9), rtol=1e-10)
    gap = second.log_evidence() - first.log_evidence()
    assert gap == pytest.approx(-PRICES.size * np.log(1e9), rel=1e-12)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, -0.0])
def test_only_positive_numbers(value):
    rows = {"price": [1.0, 2.0, value], "kind": ["a", "b", "a"]}
    with pytest.raises(ValueError, match=r"row 2, column 'price'.*above 0"):
        tb.NaiveBayes({"price": tb.LogNormal()}).fit(rows, "kind")
    model = tb.NaiveBayes({"price": tb.LogNormal()}).fit({"price": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"]}, "kind")
    if np.isinf(value):
        with pytest.raises(ValueError, match=r"row 2, column 'price'.*above 0"):
            model.predict({"price": rows["price"]})
    else:  # as if it were missing
        with pytest.warns(tb.InvalidValueWarning, match="price"):
            assert model.predict({"price": rows["price"]})[2] == model.predict({"price": [np.nan]})[0]
    with pytest.raises(ValueError, match=r"row 2, column 'price'.*above 0"):
        model.partial_fit(rows, "kind")


def test_whole_numbers_of_any_width_are_read_in_full():
    small = np.array([1, 200, 255], dtype=np.uint8)
    expected = np.log([1.0, 200.0, 255.0])
    assert tb.fit_distribution(small, tb.LogNormal()).estimate("mle").mean == pytest.approx(expected.mean(), rel=1e-15)


@pytest.fixture(params=["bayes", "map", "mle"])
def model(request):
    y = np.array(["a", "b"] * 20)
    rows = {"price": np.where(y == "a", PRICES[:, 0], 3 * PRICES[:, 0] ** 2), "size": PRICES[:, 1]}
    rows["price"][3] = np.nan
    return tb.NaiveBayes(dict.fromkeys(rows, tb.LogNormal()), estimate=request.param).fit(rows, y), rows, y


def test_it_is_the_gaussian_model_of_the_logarithms(model):
    fitted, rows, y = model
    logs = {name: np.log(column) for name, column in rows.items()}
    twin = tb.NaiveBayes(estimate=fitted.estimate).fit(logs, y)
    np.testing.assert_allclose(fitted.predict_proba(rows), twin.predict_proba(logs), rtol=1e-10)
    jacobian = sum(np.nan_to_num(column) for column in logs.values())
    np.testing.assert_allclose(fitted.score_samples(rows), twin.score_samples(logs) - jacobian, rtol=1e-10)
    found, expected = fitted.explain(rows), twin.explain(logs)
    np.testing.assert_allclose(found.contributions, expected.contributions, atol=1e-9)
    assert "of log" in fitted.show_work({name: column[:1] for name, column in rows.items()})


def test_parts_rows_and_files(model, tmp_path):
    fitted, rows, y = model
    half = {name: column[:17] for name, column in rows.items()}, y[:17]
    rest = {name: column[17:] for name, column in rows.items()}, y[17:]
    make = tb.NaiveBayes(fitted.columns, estimate=fitted.estimate)
    together = make.fit(*half).partial_fit(*rest)
    np.testing.assert_allclose(together.predict_proba(rows), fitted.predict_proba(rows), rtol=1e-11)
    alone = tb.NaiveBayes(fitted.columns, estimate=fitted.estimate).fit(*rest)
    np.testing.assert_allclose(together.forget(*half).predict_proba(rows), alone.predict_proba(rows), rtol=1e-9)
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(tb.load(tmp_path / "model").predict_proba(rows), fitted.predict_proba(rows))


def test_samples_and_filled_cells(model):
    fitted, rows, y = model
    drawn, labels = fitted.sample(4000, random_state=0)
    mine = np.log(rows["price"][(y == "a") & ~np.isnan(rows["price"])])
    assert np.log(drawn["price"][labels == "a"]).mean() == pytest.approx(mine.mean(), abs=0.1)
    assert (drawn["price"] > 0).all()
    filled = fitted.impute(rows)["price"][3]
    means = fitted._factor_scorers[0].family.mean(fitted._factor_scorers[0].parameters)[:, 0]
    weights = fitted.predict_proba({name: column[3:4] for name, column in rows.items()})[0]
    assert filled == pytest.approx(weights @ means, rel=1e-12)


def test_expected_value_of_parameters_is_the_textbook_s():
    found = tb.LogNormal().mean(tb.fit_distribution(PRICES, tb.LogNormal()).estimate("mle"))
    mean, variance = tb.fit_distribution(PRICES, tb.LogNormal()).estimate("mle")
    np.testing.assert_allclose(found, stats.lognorm.mean(s=np.sqrt(variance), scale=np.exp(mean)), rtol=1e-12)


def test_constant_columns_are_left_out_and_drawn_as_they_were():
    rows = {"price": np.full(6, 7.5), "size": PRICES[:6, 0]}
    fitted = tb.NaiveBayes(dict.fromkeys(rows, tb.LogNormal())).fit(rows, list("ababab"))
    assert fitted.constant_columns_ == ["price"]
    np.testing.assert_allclose(fitted.sample(5, random_state=1)[0]["price"], 7.5, rtol=1e-14)
    without = tb.NaiveBayes({"size": tb.LogNormal()}).fit(rows, list("ababab"))
    np.testing.assert_allclose(fitted.predict_proba(rows), without.predict_proba(rows), rtol=1e-12)


def test_no_spread_under_maximum_likelihood_is_named():
    rows = {"price": [2.0, 2.0, 3.0, 4.0]}
    with pytest.raises(ValueError, match="column 'price' in class 'a'"):
        tb.NaiveBayes({"price": tb.LogNormal()}, estimate="mle").fit(rows, list("aabb")).predict(rows)


def test_pictures():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    fitted = tb.NaiveBayes({"price": tb.LogNormal()}).fit({"price": PRICES[:, 0]}, np.arange(40) % 2)
    figure = fitted.plot_columns().figure
    across, up = figure.axes[0].lines[0].get_data()
    # the area under the drawn density is 1, but for the tails beyond three deviations
    assert np.trapezoid(up, across) == pytest.approx(1.0, abs=0.02)
    assert figure.axes[0].get_xscale() == "log"
    pyplot.close(figure)


def test_numbers_without_a_logarithm_are_found():
    assert first_invalid_cell(tb.LogNormal(), np.array([[1.0, 2.0], [0.0, 3.0]])) == (1, 0)
    assert first_invalid_cell(tb.LogNormal(), np.array([[1.0, 2.0], [3.0, -1.0]])) == (1, 1)
    assert first_invalid_cell(tb.LogNormal(), PRICES) is None


def test_sums_about_any_anchor_have_the_same_likelihood():
    family, weight = tb.LogNormal(), np.linspace(0.5, 3.0, 40)
    plain = family.collect(PRICES, weight=weight)
    moved = family.collect(PRICES, weight=weight, like=tb.Gaussian().collect(np.full((1, 3), 4.0)))
    point = family.maximum_likelihood(plain)
    cells = stats.lognorm.logpdf(PRICES, s=np.sqrt(point.variance), scale=np.exp(point.mean))
    for counted in (plain, moved):
        np.testing.assert_allclose(family.log_likelihood(point, counted)[0], weight @ cells, rtol=1e-11)
    assert moved.anchor.tolist() != plain.anchor.tolist()


def test_pictures_reach_three_deviations():
    point = tb.Gaussian().as_parameters((np.array([[1.0]]), np.array([[0.25]])), None)
    logs = np.log(plot_grid(tb.LogNormal(), point, 0))
    assert [logs[0], logs[-1]] == pytest.approx([1 - 1.5, 1 + 1.5])
