"""Linear forms, projections, pictures, the number of parameters, and files."""

import pickle

import matplotlib as mpl
import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import tallybayes as tb
from tallybayes.errors import DataError, NotLinearError
from tests.unit.models.classification.discriminant_textbook import (
    COVARIANCES,
    ESTIMATES,
    densities,
    made,
    moments,
    with_holes,
)

mpl.use("Agg")

X, Y, NEW = made(31, sizes=(14, 18, 22))
TIED = ["tied", "tied_diagonal", "tied_spherical"]


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


class TestLinear:
    @pytest.mark.parametrize("estimate", ["mle", "unbiased", "map"])
    @pytest.mark.parametrize("covariance", TIED)
    def test_discriminant_functions(self, covariance, estimate):
        model = tb.GaussianDiscriminant(covariance, estimate=estimate, class_prior="frequency").fit(X, Y)
        intercept, coef = model.discriminant_functions_
        for label, density in enumerate(densities(X, Y, covariance, estimate)):
            slope = np.linalg.solve(density.scale, density.mean)  # β = Σ⁻¹μ, γ = log π − ½ μᵀΣ⁻¹μ
            np.testing.assert_allclose(coef[label], slope, rtol=1e-9)
            bias = np.log(np.mean(label == Y)) - 0.5 * density.mean @ slope
            assert intercept[label] == pytest.approx(bias, rel=1e-9)
        rest = model.predict_joint_log_proba(NEW) - (intercept + NEW @ coef.T)
        np.testing.assert_allclose(rest, rest[:, :1] * np.ones(3), rtol=1e-9, atol=1e-9)  # common to all classes
        np.testing.assert_allclose(model.to_linear().predict_proba(NEW), model.predict_proba(NEW), rtol=1e-8)

    @pytest.mark.parametrize("covariance", TIED)
    def test_two_classes_are_logistic(self, covariance):
        rows, labels = X[Y > 0], np.array(["no", "no", "yes"])[Y[Y > 0]]
        model = tb.GaussianDiscriminant(covariance, estimate="mle").fit(rows, labels)
        form = model.to_linear()
        assert form.coef.shape == (1, 3)
        assert form.classes.tolist() == ["no", "yes"]
        np.testing.assert_allclose(
            expit(NEW @ form.coef[0] + form.intercept[0]), model.predict_proba(NEW)[:, 1], rtol=1e-9
        )
        first, second = densities(rows, labels, covariance, "mle")
        slope = np.linalg.solve(first.scale, second.mean - first.mean)  # Σ⁻¹(μ₁ − μ₀), at the midpoint of the means
        odds = np.log(np.mean(labels == "yes") / np.mean(labels == "no"))
        np.testing.assert_allclose(form.coef[0], slope, rtol=1e-9)
        assert form.intercept[0] == pytest.approx(odds - slope @ (first.mean + second.mean) / 2, rel=1e-9)

    def test_not_where_it_bends(self):
        model = tb.GaussianDiscriminant().fit(X, Y)
        for covariance in COVARIANCES:
            for estimate in ESTIMATES:
                if covariance in TIED and estimate != "bayes":
                    continue
                other = model.reestimate(covariance=covariance, estimate=estimate)
                with pytest.raises(NotLinearError, match="linear"):
                    other.to_linear()
                with pytest.raises(NotLinearError, match="reestimate\\(covariance='tied', estimate='map'\\)"):
                    _ = other.discriminant_functions_

    def test_a_constant_column_has_no_weight(self):
        wide = np.insert(X, 1, 7.0, axis=1)
        model = tb.GaussianDiscriminant("tied", estimate="map").fit(wide, Y)
        assert (model.discriminant_functions_.coef[:, 1] == 0).all()
        rows = np.insert(NEW, 1, 7.0, axis=1)
        np.testing.assert_allclose(model.to_linear().predict_proba(rows), model.predict_proba(rows), rtol=1e-9)


class TestProjection:
    def test_within_classes_it_is_white_and_ordered_by_how_far_it_parts_them(self):
        rows, labels, new = made(32, sizes=(30, 40, 20, 25), d=5)
        model = tb.GaussianDiscriminant().fit(rows, labels)
        seen = model.transform(rows)
        assert seen.shape == (115, 3)  # one direction fewer than classes
        np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-9)
        within = sum(scatter for _, _, scatter in moments(seen, labels)) / (115 - 4)
        np.testing.assert_allclose(within, np.eye(3), atol=1e-9)
        between = sum(n * np.outer(mean, mean) for n, mean, _ in moments(seen, labels))
        np.testing.assert_allclose(between, np.diag(np.diag(between)), atol=1e-7 * between.max())
        assert (np.diff(np.diag(between)) < 0).all()
        peer = LinearDiscriminantAnalysis().fit(rows, labels)
        sign = np.sign((peer.transform(rows) * seen).sum(axis=0))
        wider = (peer.transform(rows) * sign * seen).sum() / (seen**2).sum()
        assert min(abs(wider - 1), abs(wider - np.sqrt(115 / 111))) < 1e-9  # by n − K, or by n: as its version does
        np.testing.assert_allclose(wider * model.transform(new) * sign, peer.transform(new), rtol=1e-7)
        for covariance in COVARIANCES:  # the directions are the data's, whatever the model
            np.testing.assert_array_equal(model.reestimate(covariance=covariance).transform(new), model.transform(new))

    def test_units_and_offsets_do_not_matter(self):
        moved = tb.GaussianDiscriminant().fit(X * [1e-6, 1e5, 3.0] + [1e3, 1e8, 0], Y)
        first, second = (
            tb.GaussianDiscriminant().fit(X, Y).transform(NEW),
            moved.transform(NEW * [1e-6, 1e5, 3.0] + [1e3, 1e8, 0]),
        )
        np.testing.assert_allclose(second * np.sign((first * second).sum(axis=0)), first, rtol=1e-5)

    def test_no_more_directions_than_the_means_span(self):
        for columns, expected in (([0], 1), ([0, 1], 2), ([0, 1, 0], 2)):
            model = tb.GaussianDiscriminant().fit(X[:, columns], Y)
            assert model.transform(NEW[:, columns]).shape == (11, expected)
            assert model.scalings_.shape == (len(columns), expected)
        line = tb.GaussianDiscriminant().fit([[0, 0], [1, 2], [4, 1], [5, 3], [8, 2], [9, 4]], [0, 0, 1, 1, 2, 2])
        assert line.transform([[0, 0]]).shape == (1, 1)  # three means on one line

    def test_wrong_columns(self):
        with pytest.raises(DataError, match="X has 2 features"):
            tb.GaussianDiscriminant().fit(X, Y).transform(X[:, :2])


class TestPictures:
    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("estimate", ["bayes", "mle"])
    @pytest.mark.parametrize("covariance", COVARIANCES)
    def test_decision(self, covariance, estimate):
        model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X[:, :2], Y)
        (ax,) = model.plot_decision_boundary(X[:, :2], Y).axes
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]
        drawn = [line for line in ax.lines if line.get_marker() == "."]
        assert sum(len(line.get_xdata()) for line in drawn) == len(X)
        ellipses = [line for line in ax.lines if len(line.get_xdata()) == 200]
        for ring, density in zip(ellipses, densities(X[:, :2], Y, covariance, estimate), strict=True):
            if estimate == "mle":  # at two deviations of the class
                gap = np.column_stack(ring.get_data()) - density.mean
                lengths = (gap @ np.linalg.inv(density.scale) * gap).sum(axis=1)
                np.testing.assert_allclose(lengths, 4, rtol=1e-8)

    @pytest.mark.slow
    def test_decision_with_fewer_arguments(self):
        import matplotlib.pyplot as plt

        model = tb.GaussianDiscriminant("tied").fit(X[:, :2], Y)
        ax = plt.subplots()[1]
        assert model.plot_decision_boundary(ax=ax).axes[0] is ax
        assert not [line for line in ax.lines if line.get_marker() == "."]
        (alone,) = model.plot_decision_boundary(X[:, :2]).axes
        assert [len(line.get_xdata()) for line in alone.lines if line.get_marker() == "."] == [len(X)]
        model.plot_decision_boundary(None, Y)
        one = tb.GaussianDiscriminant().fit(X[:, :2], np.zeros(len(X), int))
        one.plot_decision_boundary(X[:, :2], np.zeros(len(X), int))
        pandas = pytest.importorskip("pandas")
        named = tb.GaussianDiscriminant().fit(pandas.DataFrame(X[:, :2], columns=["width", "height"]), Y)
        assert named.plot_decision_boundary().axes[0].get_xlabel() == "width"

    def test_decisions_along_one_column_and_what_needs_two(self):
        model = tb.GaussianDiscriminant().fit(X[:, :1], Y)
        assert len(model.plot_decision_boundary().axes[0].lines) == len(model.classes_)
        with pytest.raises(DataError, match=r"has shape \(1,\); expected at least 2"):
            model.plot_joint()

    def test_projection(self):
        (ax,) = tb.GaussianDiscriminant().fit(X, Y).plot_projection(X, Y).axes
        assert sum(len(line.get_xdata()) for line in ax.lines) == len(X)
        two = tb.GaussianDiscriminant().fit(X[Y < 2], Y[Y < 2]).plot_projection(X[Y < 2], Y[Y < 2])
        assert two.axes[0].get_ylabel() == ""
        one = tb.GaussianDiscriminant().fit(X, np.zeros(len(X), int))
        with pytest.raises(DataError, match="no discriminant direction"):
            one.plot_projection(X, np.zeros(len(X), int))
        with pytest.raises(DataError, match="X has 2 features"):
            tb.GaussianDiscriminant().fit(X, Y).plot_projection(X[:, :2], Y)

    def test_columns_and_explanation(self):
        model = tb.GaussianDiscriminant("diagonal").fit(X, Y)
        assert len([ax for ax in model.plot_columns().axes if ax.get_visible()]) == 3
        (ax,) = tb.GaussianDiscriminant().fit(X, Y).plot_explanation(NEW[:1]).axes
        assert len(ax.patches) == 4  # the class prior and three columns


def test_number_of_parameters():
    d, k = 3, 3
    covariance = {
        "full": k * d * (d + 1) // 2,
        "tied": d * (d + 1) // 2,
        "diagonal": k * d,
        "tied_diagonal": d,
        "spherical": k,
        "tied_spherical": 1,
    }
    model = tb.GaussianDiscriminant().fit(X, Y)
    for name, expected in covariance.items():
        assert model.reestimate(covariance=name).n_parameters_ == k - 1 + k * d + expected
    assert model.n_parameters_joint_ is None


MODELS = [
    tb.GaussianDiscriminant(),
    tb.GaussianDiscriminant("tied", shrinkage="auto", estimate="map", class_prior="uniform"),
    tb.GaussianDiscriminant("tied", shrinkage=np.float32(0.25), class_prior={0: 0.5, 1: 0.25, 2: 0.25}),
    tb.GaussianDiscriminant(prior=tb.NormalInverseWishart([1e8, 1e8, 1e8], 1, 5, np.eye(3))),
    tb.GaussianDiscriminant("spherical", prior=tb.NormalInverseGamma(0, 1, 2, 1), class_prior=tb.Dirichlet(1)),
]


class TestFiles:
    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("model", MODELS, ids=repr)
    def test_come_back_the_same(self, model, tmp_path):
        model = clone(model).fit(X + 1e8, Y.astype(np.int16))
        rows = with_holes(NEW) + 1e8
        model.save(tmp_path / "model")
        for other in (tb.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
            assert type(other) is tb.GaussianDiscriminant
            np.testing.assert_array_equal(other.predict_joint_log_proba(rows), model.predict_joint_log_proba(rows))
            assert other.classes_.dtype == np.int16
            assert other.tally_ == model.tally_
            other.partial_fit(X[:5] + 1e8, Y[:5]).forget(X[:5] + 1e8, Y[:5])
            np.testing.assert_allclose(other.predict_proba(rows), model.predict_proba(rows), rtol=1e-8)
        empty = clone(model)
        assert not hasattr(empty, "tally_")
        np.testing.assert_array_equal(empty.fit(X + 1e8, Y).predict_proba(rows), model.predict_proba(rows))

    def test_a_loaded_model_reestimates(self, tmp_path):
        model = tb.GaussianDiscriminant().fit(X, Y)
        model.save(tmp_path / "model")
        for covariance in COVARIANCES:
            np.testing.assert_array_equal(
                tb.load(tmp_path / "model").reestimate(covariance=covariance).predict_proba(NEW),
                model.reestimate(covariance=covariance).predict_proba(NEW),
            )

    def test_a_tally_is_enough(self):
        model = tb.GaussianDiscriminant("tied").fit(X, Y)
        other = tb.GaussianDiscriminant("tied").fit_tally(model.tally_)
        np.testing.assert_array_equal(other.predict_proba(NEW), model.predict_proba(NEW))
