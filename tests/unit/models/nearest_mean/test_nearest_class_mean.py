"""The nearest class mean, in metrics that are given."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.base import clone
from sklearn.neighbors import NearestCentroid

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, FileError, LabelError, StatisticsError
from tests.unit.models.classification.discriminant_textbook import densities, made, moments

X, Y, NEW = made(41, sizes=(20, 25, 30))
MEANS = np.array([X[c == Y].mean(axis=0) for c in range(3)])
POOLED = sum(scatter for _, _, scatter in moments(X, Y)) / (len(X) - 3)


def manhattan(rows, mean):
    return np.abs(rows - mean).sum(axis=1)


class TestMetrics:
    def test_mahalanobis(self):
        model = tb.NearestClassMean().fit(X, Y)
        expected = cdist(NEW, MEANS, "mahalanobis", VI=np.linalg.inv(POOLED)) ** 2
        np.testing.assert_allclose(model.squared_distances(NEW), expected, rtol=1e-9)
        np.testing.assert_allclose(model.predict_proba(NEW), softmax(-expected / 2, axis=1), rtol=1e-9)
        assert model.predict(NEW).tolist() == expected.argmin(axis=1).tolist()
        np.testing.assert_allclose(model.means_, MEANS, rtol=1e-12)
        np.testing.assert_allclose(model.projection_.T @ model.projection_, np.linalg.inv(POOLED), rtol=1e-9)

    @pytest.mark.parametrize("seed", range(4))
    def test_mahalanobis_is_the_tied_discriminant_with_equal_class_priors(self, seed):
        rows, labels, new = made(seed, sizes=(12, 40, 25), d=4, apart=0.5)
        model = tb.NearestClassMean().fit(rows, labels)
        tied = tb.GaussianDiscriminant("tied", estimate="unbiased", class_prior="uniform").fit(rows, labels)
        np.testing.assert_allclose(model.predict_proba(new), tied.predict_proba(new), rtol=0, atol=1e-12)
        assert model.predict(new).tolist() == tied.predict(new).tolist()

    def test_mahalanobis_survives_what_unbiased_does_not(self):
        for rows, labels in [
            (np.array([[0.0, 1.0], [3.0, 2.0]]), [0, 1]),  # one row per class
            (made(1, sizes=(3, 4), d=9)[0], made(1, sizes=(3, 4), d=9)[1]),  # more columns than rows
            (np.column_stack([X, X[:, 0]]), Y),  # a column twice
            (np.insert(X, 1, 5.0, axis=1), Y),  # a constant one
            (np.full((4, 2), 3.0), [0, 0, 1, 1]),
        ]:
            model = tb.NearestClassMean().fit(rows, labels)
            proba = model.predict_proba(rows)
            assert np.isfinite(proba).all()
            constant = (rows == rows[0]).all(axis=0)
            if not constant.any():  # the MAP covariance about the means as they are
                covariance = densities(rows, labels, "tied", "map")[0].scale
                means = [rows[np.asarray(labels) == label].mean(axis=0) for label in sorted(set(labels))]
                expected = cdist(rows, means, "mahalanobis", VI=np.linalg.inv(covariance)) ** 2
                np.testing.assert_allclose(proba, softmax(-expected / 2, axis=1), rtol=1e-8)
        model = tb.NearestClassMean().fit(np.insert(X, 1, 5.0, axis=1), Y)
        here, there = (np.insert(NEW, 1, value, axis=1) for value in (5.0, -9.0))
        np.testing.assert_array_equal(model.predict_proba(there), model.predict_proba(here))

    def test_units_and_offsets_do_not_matter_to_mahalanobis(self):
        scale, shift = np.array([1e-6, 1e4, -2.0]), np.array([1e3, 1e8, 0.0])
        moved = tb.NearestClassMean().fit(X * scale + shift, Y)
        np.testing.assert_allclose(
            moved.predict_proba(NEW * scale + shift), tb.NearestClassMean().fit(X, Y).predict_proba(NEW), rtol=1e-5
        )

    def test_euclidean(self):
        model = tb.NearestClassMean("euclidean").fit(X, Y)
        np.testing.assert_allclose(model.squared_distances(NEW), cdist(NEW, MEANS, "sqeuclidean"), rtol=1e-12)
        assert model.predict(NEW).tolist() == NearestCentroid().fit(X, Y).predict(NEW).tolist()
        np.testing.assert_array_equal(model.projection_, np.eye(3))

    def test_far_from_zero(self):
        model = tb.NearestClassMean("euclidean").fit(X + 1e8, Y)
        expected = tb.NearestClassMean("euclidean").fit(X, Y).squared_distances(NEW)
        np.testing.assert_allclose(model.squared_distances(NEW + 1e8), expected, rtol=1e-6)

    def test_a_matrix(self):
        root = np.random.default_rng(0).normal(size=(2, 3))
        matrix = root.T @ root  # of rank 2
        model = tb.NearestClassMean(matrix).fit(X, Y)
        gap = NEW[:, None] - MEANS
        expected = np.einsum("nci,ij,ncj->nc", gap, matrix, gap)
        np.testing.assert_allclose(model.squared_distances(NEW), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            tb.NearestClassMean(matrix.tolist()).fit(X, Y).predict_proba(NEW), model.predict_proba(NEW), rtol=1e-12
        )

    def test_a_callable(self):
        model = tb.NearestClassMean(manhattan).fit(X, Y)
        np.testing.assert_allclose(model.squared_distances(NEW), cdist(NEW, MEANS, "cityblock"), rtol=1e-12)
        with pytest.raises(EstimateError, match="callable, so it has no matrix"):
            _ = model.projection_
        same = tb.NearestClassMean(lambda rows, mean: ((rows - mean) ** 2).sum(axis=1)).fit(X, Y)
        np.testing.assert_allclose(
            same.predict_proba(NEW), tb.NearestClassMean("euclidean").fit(X, Y).predict_proba(NEW), rtol=1e-12
        )

    @pytest.mark.parametrize(
        ("metric", "words"),
        [
            ("cosine", "metric is 'cosine'; expected 'mahalanobis', 'euclidean', 'learned', a matrix or a callable"),
            (np.eye(2), r"matrix of shape \(2, 2\); expected a symmetric one of \(3, 3\)"),
            (np.triu(np.ones((3, 3))), r"(?s)expected a symmetric one .* pass W\.T @ W"),
            (np.diag([1.0, -1.0, 1.0]), "negative eigenvalue -1"),
            (np.full((3, 3), np.nan), "a matrix of finite numbers"),
            (None, "metric is None"),
            (3.0, "metric is 3.0"),
        ],
    )
    def test_what_is_no_metric(self, metric, words):
        model = tb.NearestClassMean().fit(X, Y)
        before = model.tally_
        with pytest.raises(EstimateError, match=words):
            model.set_params(metric=metric).fit(X, Y)
        assert model.tally_ is before  # a failed fit changes nothing

    def test_a_callable_of_another_shape(self):
        with pytest.raises(DataError, match=r"returned has shape \(\); expected \(11,\)"):
            tb.NearestClassMean(lambda rows, mean: 1.0).fit(X, Y).predict(NEW)

    def test_rows_must_be_whole(self):
        bad = X.copy()
        bad[4, 1] = np.nan
        model = tb.NearestClassMean().fit(X, Y)
        for call in (tb.NearestClassMean("euclidean").fit, model.partial_fit):
            with pytest.raises(DataError, match=r"found nan in row 4, column 1(.|\n)*complete rows(.|\n)*NaiveBayes"):
                call(bad, Y)
        with pytest.raises(DataError, match="found nan in row 4"):
            model.predict(bad)
        with pytest.raises(DataError, match="categorical column"):
            tb.NearestClassMean().fit({"a": ["x", "y"]}, [0, 1])


@pytest.mark.parametrize(
    "metric",
    ["mahalanobis", "euclidean", manhattan, 2 * np.eye(3)],
    ids=lambda metric: getattr(metric, "__name__", "matrix" if not isinstance(metric, str) else metric),
)
@pytest.mark.parametrize("offset", [0.0, 1e8], ids=["near", "far"])
class TestCounting:
    def agree(self, first, second, offset, tolerance=1e-7):
        assert first.classes_.tolist() == second.classes_.tolist()
        np.testing.assert_allclose(first.means_, second.means_, rtol=1e-14)
        found = first.squared_distances(NEW + offset)
        np.testing.assert_allclose(found, second.squared_distances(NEW + offset), rtol=tolerance)

    @pytest.mark.slow_after(2)
    def test_parts_add_up(self, metric, offset):
        rows, whole = X + offset, tb.NearestClassMean(metric).fit(X + offset, Y)
        by_part = tb.NearestClassMean(metric)
        for part in np.array_split(np.random.default_rng(0).permutation(len(X)), 6):
            by_part.partial_fit(rows[part], Y[part])
        self.agree(by_part, whole, offset)
        halves = [tb.NearestClassMean(metric).fit(rows[part], Y[part]) for part in (slice(0, 40), slice(40, None))]
        self.agree(halves[0] + halves[1], whole, offset)
        self.agree(sum(halves), whole, offset)

    @pytest.mark.slow_after(2)
    def test_forgetting_and_dropping(self, metric, offset):
        rows = X + offset
        model = tb.NearestClassMean(metric).fit(rows, Y).forget(rows[50:], Y[50:])
        self.agree(model, tb.NearestClassMean(metric).fit(rows[:50], Y[:50]), offset)
        two = tb.NearestClassMean(metric).fit(rows[Y < 2], Y[Y < 2])
        self.agree(tb.NearestClassMean(metric).fit(rows, Y).forget(rows[Y == 2], Y[Y == 2]), two, offset)
        self.agree(tb.NearestClassMean(metric).fit(rows, Y).drop_class(2), two, offset)

    def test_weights_repeat_rows(self, metric, offset):
        times = np.random.default_rng(1).integers(0, 4, len(X))
        weighted = tb.NearestClassMean(metric).fit(X + offset, Y, times)
        repeated = tb.NearestClassMean(metric).fit(np.repeat(X + offset, times, axis=0), np.repeat(Y, times))
        self.agree(weighted, repeated, offset)


values = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from("abc")), min_size=1, max_size=20)


@given(values, values)
def test_any_rows_add_and_are_forgotten(first, second):
    def table(rows):
        return np.array([row[:2] for row in rows], dtype=float), [row[2] for row in rows]

    one, both = tb.NearestClassMean().fit(*table(first)), tb.NearestClassMean().fit(*table(first + second))
    rows = table(first + second)[0]
    added = one + tb.NearestClassMean().fit(*table(second))
    np.testing.assert_allclose(added.predict_proba(rows), both.predict_proba(rows), atol=1e-9)
    np.testing.assert_allclose(both.forget(*table(second)).predict_proba(rows), one.predict_proba(rows), atol=1e-9)


class TestNewClasses:
    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize(
        "metric",
        ["mahalanobis", "euclidean", "learned", 2 * np.eye(3)],
        ids=lambda metric: getattr(metric, "__name__", "matrix" if not isinstance(metric, str) else metric),
    )
    def test_one_example_leaves_the_metric_bit_for_bit(self, metric, tmp_path):
        model = tb.NearestClassMean(metric).fit(X[Y < 2], Y[Y < 2])
        before, distances = model.projection_.copy(), model.squared_distances(NEW)
        example = X[Y == 2][:1]
        assert model.add_class(2, example) is model
        assert model.projection_.tobytes() == before.tobytes()
        np.testing.assert_allclose(model.squared_distances(NEW)[:, :2], distances, rtol=1e-12)
        np.testing.assert_array_equal(model.means_[2], example[0])
        np.testing.assert_allclose(model.squared_distances(example)[0, 2], 0, atol=1e-20)
        model.add_class(3, X[Y == 2][1:9])  # and several
        assert model.projection_.tobytes() == before.tobytes()
        model.save(tmp_path / "model")
        model.set_params(verbose=False)  # what does not concern the metric does not move it
        for other in (tb.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), model.reestimate(tol=1e-3)):
            assert other.projection_.tobytes() == before.tobytes()
            assert other.squared_distances(NEW).tobytes() == model.squared_distances(NEW).tobytes()

    def test_there_already(self):
        model = tb.NearestClassMean().fit(X, Y)
        with pytest.raises(LabelError, match="class 1 exists already"):
            model.add_class(1, X[:1])
        assert model.classes_.tolist() == [0, 1, 2]

    def test_more_rows_move_the_covariance_again(self):
        """`add_class` keeps the metric; `partial_fit` counts rows into it, those of the new class too."""
        model = tb.NearestClassMean().fit(X[Y < 2], Y[Y < 2]).add_class(2, X[Y == 2])
        whole = tb.NearestClassMean().fit(X, Y)
        assert not np.allclose(model.projection_, whole.projection_)
        model.partial_fit(X[:1], Y[:1])
        np.testing.assert_allclose(model.projection_, whole.partial_fit(X[:1], Y[:1]).projection_, rtol=1e-9)

    def test_it_is_not_fitted_yet(self):
        with pytest.raises(Exception, match="not fitted"):
            tb.NearestClassMean().add_class(1, X[:1])


class TestOtherMetricOfTheSameMeans:
    def test_reestimate_and_set_params(self):
        model = tb.NearestClassMean().fit(X, Y)
        for metric in ("euclidean", manhattan, np.diag([1.0, 2.0, 3.0])):
            expected = tb.NearestClassMean(metric).fit(X, Y).squared_distances(NEW)
            np.testing.assert_allclose(model.reestimate(metric=metric).squared_distances(NEW), expected, rtol=1e-12)
            np.testing.assert_allclose(
                tb.NearestClassMean().fit(X, Y).set_params(metric=metric).squared_distances(NEW), expected, rtol=1e-12
            )
        assert model.metric == "mahalanobis"
        back = model.reestimate(metric="euclidean").reestimate(metric="mahalanobis")
        np.testing.assert_array_equal(back.projection_, model.projection_)

    def test_what_was_not_counted_or_learned_cannot_be_had(self):
        with pytest.raises(EstimateError, match=r"products of the columns(.|\n)*Fit with metric='mahalanobis'"):
            tb.NearestClassMean("euclidean").fit(X, Y).reestimate(metric="mahalanobis").predict(NEW)
        with pytest.raises(EstimateError, match=r"no metric is learned yet(.|\n)*Use fit"):
            tb.NearestClassMean().fit(X, Y).reestimate(metric="learned").predict(NEW)

    def test_a_tally_is_enough(self):
        model = tb.NearestClassMean().fit(X, Y)
        other = tb.NearestClassMean().fit_tally(model.tally_)
        np.testing.assert_array_equal(other.predict_proba(NEW), model.predict_proba(NEW))
        from_discriminant = tb.NearestClassMean().fit_tally(tb.GaussianDiscriminant().fit(X, Y).tally_)
        np.testing.assert_allclose(from_discriminant.predict_proba(NEW), model.predict_proba(NEW), rtol=1e-12)

    def test_other_parameters_do_not_add(self):
        with pytest.raises(StatisticsError, match="parameters differ"):
            tb.NearestClassMean().fit(X, Y) + tb.NearestClassMean("euclidean").fit(X, Y)


def test_when_every_row_is_forgotten():
    model = tb.NearestClassMean().fit(X, Y).forget(X, Y)
    assert model.classes_.tolist() == []
    with pytest.raises(DataError, match="no class is left"):
        model.predict(NEW)
    np.testing.assert_allclose(
        model.partial_fit(X, Y).predict_proba(NEW), tb.NearestClassMean().fit(X, Y).predict_proba(NEW), rtol=1e-9
    )


def test_forgetting_what_was_never_learned_is_refused():
    model = tb.NearestClassMean().fit(X, Y)
    before, metric = model.tally_, model.projection_.copy()
    with pytest.raises(StatisticsError, match="would have count"):
        model.forget(X, np.zeros(len(X), int))
    assert model.tally_ is before
    np.testing.assert_array_equal(model.projection_, metric)


class TestFiles:
    @pytest.mark.parametrize(
        "metric", ["mahalanobis", "euclidean", "learned", np.diag([1.0, 2.0, 0.5]), np.eye(3).tolist()], ids=str
    )
    def test_come_back_the_same(self, metric, tmp_path):
        model = tb.NearestClassMean(metric, n_components=2).fit(X, np.array(["x", "y", "z"])[Y])
        model.save(tmp_path / "model")
        for other in (tb.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
            assert type(other) is tb.NearestClassMean
            np.testing.assert_array_equal(other.predict_proba(NEW), model.predict_proba(NEW))
            np.testing.assert_array_equal(other.projection_, model.projection_)
            assert other.predict(NEW).tolist() == model.predict(NEW).tolist()
            assert (other.history_, other.converged_) == (model.history_, model.converged_)
            assert other.n_components == 2
            other.partial_fit(X[:3], np.array(["x", "y", "z"])[Y[:3]])
            assert len((other + other).classes_) == 3

    def test_no_code(self, tmp_path):
        model = tb.NearestClassMean(manhattan).fit(X, Y)
        with pytest.raises(
            FileError,
            match=r"callable metric cannot be saved: files contain no code(.|\n)*reestimate\(metric='euclidean'\)",
        ):
            model.save(tmp_path / "model")
        assert not (tmp_path / "model").exists()
        model.reestimate(metric="euclidean").save(tmp_path / "model")  # the way out that the error names
        other = tb.load(tmp_path / "model").set_params(metric=manhattan)
        np.testing.assert_array_equal(other.predict_proba(NEW), model.predict_proba(NEW))

    def test_a_projection_that_does_not_fit_is_refused(self, tmp_path):
        from tallybayes._utils import sealed_file

        tb.NearestClassMean("learned").fit(X, Y).save(tmp_path / "model")
        kind, manifest, arrays = sealed_file.read(tmp_path / "model")
        for bad in (np.ones((2, 5)), np.full((3, 3), np.inf), np.ones(3)):
            sealed_file.write(tmp_path / "other", kind, manifest, {**arrays, "metric/learned": bad})
            with pytest.raises(FileError, match="not a projection of 3 columns"):
                tb.load(tmp_path / "other")

    def test_clone(self):
        model = clone(tb.NearestClassMean(np.eye(3)).fit(X, Y))
        assert not hasattr(model, "tally_")
        np.testing.assert_array_equal(model.metric, np.eye(3))


def test_scoring_by_the_name_of_a_column_and_logarithms() -> None:
    table = {"a": [0.0, 1.0, 5.0, 6.0], "c": ["x", "x", "y", "y"]}
    model = tb.NearestClassMean("euclidean").fit(table, "c")
    assert model.score(table, "c") == 1.0
    np.testing.assert_allclose(np.exp(model.predict_log_proba(table)), model.predict_proba(table))
