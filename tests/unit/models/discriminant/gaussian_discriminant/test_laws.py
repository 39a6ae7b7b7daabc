"""Moments add and subtract, far from zero too; units do not matter; degenerate data are survived or named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, LabelError, StatisticsError
from tests.unit.models.classification.discriminant_textbook import (
    COVARIANCES,
    ESTIMATES,
    joint_log_prob,
    made,
    with_holes,
)

PER_COLUMN = ["full", "tied", "diagonal", "tied_diagonal"]
FAR = 1e8


def fitted(X, y, covariance="full", estimate="bayes", **options):
    return tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, y, **options)


def agree(first, second, rows, tolerance=1e-9):
    assert first.classes_.tolist() == second.classes_.tolist()
    assert first.tally_.isclose(second.tally_, tolerance)
    for covariance in COVARIANCES:
        for estimate in ("bayes", "map", "unbiased"):
            one, other = (m.reestimate(covariance=covariance, estimate=estimate) for m in (first, second))
            np.testing.assert_allclose(
                one.predict_joint_log_proba(rows), other.predict_joint_log_proba(rows), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("offset", [0.0, FAR], ids=["near", "far"])
class TestCounting:
    """Rows around 1e8 are themselves exact to 1.5e-8 only; what is counted of them is to 1e-9 and better."""

    @pytest.mark.slow
    def test_parts_in_any_order_are_the_whole(self, offset):
        X, y, new = made(1, sizes=(30, 40, 50), offset=offset)
        whole = fitted(X, y)
        order = np.random.default_rng(0).permutation(len(X))
        by_part = tb.GaussianDiscriminant()
        for part in np.array_split(order, 7):
            by_part.partial_fit(X[part], y[part])
        agree(by_part, whole, new)
        agree(sum(fitted(X[part], y[part]) for part in np.array_split(order, 4)), whole, new)
        by_class = sum(fitted(X[y == c], y[y == c]) for c in (2, 0, 1))  # no part has two classes
        agree(by_class, whole, new)

    @pytest.mark.slow
    def test_forgetting_is_never_having_seen(self, offset):
        X, y, new = made(2, sizes=(40, 60, 80), offset=offset)
        kept = np.arange(len(X)) < 60
        model = fitted(X, y).forget(X[~kept], y[~kept])
        agree(model, fitted(X[kept], y[kept]), new)
        agree(fitted(X[kept], y[kept]).partial_fit(X[~kept], y[~kept]).forget(X[~kept], y[~kept]), model, new)

    @pytest.mark.slow_after(1)
    def test_forgetting_nearly_all(self, offset):
        X, y, new = made(3, sizes=(2000, 2000), offset=offset)
        kept = np.arange(len(X)) < 20
        agree(fitted(X, y).forget(X[~kept], y[~kept]), fitted(X[kept], y[kept]), new, 1e-8)

    @pytest.mark.slow
    def test_classes_come_and_go(self, offset):
        X, y, new = made(4, sizes=(20, 25, 30), offset=offset)
        whole, two = fitted(X, y), fitted(X[y < 2], y[y < 2])
        agree(two.reestimate().add_class(2, X[y == 2]), whole, new)
        agree(whole.reestimate().drop_class(2), two, new)
        agree(fitted(X, y).forget(X[y == 2], y[y == 2]), two, new)
        with pytest.raises(LabelError, match="class 1 exists already"):
            fitted(X, y).add_class(1, X[:2])
        with pytest.raises(LabelError, match="there is no class 7"):
            fitted(X, y).drop_class(7)

    @pytest.mark.slow
    def test_weights_repeat_rows(self, offset):
        X, y, new = made(5, sizes=(15, 20, 12), offset=offset)
        times = np.random.default_rng(1).integers(0, 4, len(X))
        agree(fitted(X, y, sample_weight=times), fitted(np.repeat(X, times, axis=0), np.repeat(y, times)), new)
        half = fitted(X, y, sample_weight=np.full(len(X), 0.5))
        agree(half.partial_fit(X, y, sample_weight=np.full(len(X), 0.5)), fitted(X, y), new)


values = st.lists(st.tuples(st.integers(-20, 20), st.integers(-5, 5), st.sampled_from("abc")), min_size=1, max_size=30)


@pytest.mark.slow
@given(values, values, st.sampled_from(COVARIANCES), st.sampled_from([0.0, FAR]))
def test_any_rows_add_and_are_forgotten(first, second, covariance, offset):
    def table(rows):
        return np.array([row[:2] for row in rows], dtype=float) + offset, [row[2] for row in rows]

    one = tb.GaussianDiscriminant(covariance).fit(*table(first))
    both = tb.GaussianDiscriminant(covariance).fit(*table(first + second))
    rows = table(first + second)[0]
    added = one + tb.GaussianDiscriminant(covariance).fit(*table(second))
    # whole numbers about a whole anchor: every sum is exact, so the models are the same, constant columns included
    np.testing.assert_allclose(added.predict_proba(rows), both.predict_proba(rows), rtol=1e-9, atol=1e-12)
    taken = both.forget(*table(second))
    assert taken.constant_columns_ == one.constant_columns_
    np.testing.assert_allclose(taken.predict_proba(rows), one.predict_proba(rows), rtol=1e-9, atol=1e-12)
    assert np.isfinite(one.predict_joint_log_proba(rows)).all()  # the default never fails


def test_forgetting_what_was_never_learned_is_refused():
    X, y, _ = made(6)
    model = fitted(X, y)
    before = model.tally_
    for rows, labels, words in [
        (X[:1], [9], r"class 9 would have count -1 \(0 counted, 1 to remove\)"),
        (np.repeat(X[:1], 40, axis=0), [y[0]] * 40, "would have count"),
        (X[:1] + 1e4, y[:1], f"class {y[0]}, column 0 would have scatter"),
    ]:
        with pytest.raises(StatisticsError, match=words):
            model.forget(rows, labels)
        assert model.tally_ is before


def test_models_under_other_parameters_do_not_add():
    X, y, _ = made(6)
    with pytest.raises(StatisticsError, match="parameters differ"):
        fitted(X, y) + fitted(X, y, "tied")


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("empty", [0, 1, 2])
@pytest.mark.parametrize("estimate", ["mle", "unbiased", "bayes"])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_declared_class_has_no_share_of_the_rows_yet(covariance, estimate, empty):
    X, y, new = made(7, sizes=(12, 15))
    holed = with_holes(new)
    there = [label for label in (0, 1, 2) if label != empty]
    y = np.array(there)[y]
    settings = {"estimate": estimate, "class_prior": "frequency"}
    model = tb.GaussianDiscriminant(covariance, **settings).partial_fit(X, y, classes=[0, 1, 2])
    without = tb.GaussianDiscriminant(covariance, **settings).fit(X, y)
    for rows in (new, holed):
        np.testing.assert_allclose(model.predict_proba(rows)[:, there], without.predict_proba(rows), rtol=1e-10)
        assert (model.predict_proba(rows)[:, empty] == 0).all()
        assert model.predict(rows).tolist() == without.predict(rows).tolist()
    np.testing.assert_allclose(model.impute(holed), without.impute(holed), rtol=1e-9)
    if estimate == "bayes":
        shares = np.exp(model.reestimate(class_prior=None).class_log_prior_)
        np.testing.assert_allclose(
            shares, [1 / 30 if label == empty else (13 + 3 * (label == there[1])) / 30 for label in range(3)]
        )
    if estimate == "mle":
        with pytest.raises(
            DataError, match=f"'mle' estimate of column 0 in class {empty} is undefined: nothing was counted"
        ):
            model.predict_proba(new, class_prior="uniform")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_predict_is_the_class_of_the_largest_probability(covariance, estimate):
    """Some models predict by a shorter way than they score."""
    for offset in (0.0, FAR):
        X, y, _ = made(20, sizes=(60, 80, 70), offset=offset, apart=0.7)
        rows = np.concatenate([X, with_holes(X, share=0.3)])
        for model in (fitted(X, y, covariance, estimate), fitted(X[y > 0], y[y > 0], covariance, estimate)):
            best = model.classes_[model.predict_joint_log_proba(rows).argmax(axis=1)]
            assert model.predict(rows).tolist() == best.tolist()
    wide = np.insert(X, 0, 2.5, axis=1)
    if estimate in ("map", "bayes"):
        model = fitted(wide, y, covariance, estimate)
        wide[::2, 0] = 1e6  # another value of a constant column moves nothing
        assert model.predict(wide).tolist() == model.classes_[model.predict_proba(wide).argmax(axis=1)].tolist()


@pytest.mark.parametrize("estimate", ESTIMATES)
class TestUnits:
    SCALE, SHIFT = np.array([1e-6, -3.0, 2e5]), np.array([4.0, -1e3, 7e6])

    @pytest.mark.slow_after(4)
    @pytest.mark.parametrize("covariance", PER_COLUMN)
    def test_each_column_has_its_own_scale_and_offset(self, covariance, estimate):
        X, y, new = made(8)
        new = with_holes(new)
        one, other = fitted(X, y, covariance, estimate), fitted(X * self.SCALE + self.SHIFT, y, covariance, estimate)
        moved = new * self.SCALE + self.SHIFT
        np.testing.assert_allclose(other.predict_proba(moved), one.predict_proba(new), rtol=1e-6, atol=1e-12)
        jacobian = np.where(np.isnan(new), 0.0, np.log(np.abs(self.SCALE))).sum(axis=1)  # densities change by it
        np.testing.assert_allclose(other.score_samples(moved), one.score_samples(new) - jacobian, rtol=1e-7, atol=1e-7)

    @pytest.mark.parametrize("covariance", ["spherical", "tied_spherical"])
    def test_spheres_have_one_scale_and_any_rotation(self, covariance, estimate):
        X, y, new = made(8)
        turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
        one = fitted(X, y, covariance, estimate)
        other = fitted(1e-4 * X @ turn + self.SHIFT, y, covariance, estimate)
        np.testing.assert_allclose(
            other.predict_proba(1e-4 * new @ turn + self.SHIFT), one.predict_proba(new), rtol=1e-4, atol=1e-9
        )

    @pytest.mark.parametrize("covariance", ["full", "tied"])
    def test_any_linear_map_where_no_prior_knows_the_columns(self, covariance, estimate):
        """The default prior has no correlations, which a rotation makes: it holds for columns, not for directions."""
        X, y, new = made(8)
        map_ = np.random.default_rng(1).normal(size=(3, 3))
        one, other = fitted(X, y, covariance, estimate), fitted(X @ map_ + 5, y, covariance, estimate)
        first, second = one.predict_proba(new), other.predict_proba(new @ map_ + 5)
        if estimate in ("mle", "unbiased"):
            np.testing.assert_allclose(second, first, rtol=1e-8)
        else:
            assert np.abs(second - first).max() > 1e-6
            location, scale = X.mean(axis=0), np.cov(X.T)
            prior = tb.NormalInverseWishart(location, 1, 6, scale)
            mapped = tb.NormalInverseWishart(location @ map_ + 5, 1, 6, map_.T @ scale @ map_)
            np.testing.assert_allclose(
                other.reestimate(prior=mapped).predict_proba(new @ map_ + 5),
                one.reestimate(prior=prior).predict_proba(new),
                rtol=1e-8,
            )


@pytest.mark.parametrize("estimate", ["bayes", "map"])
@pytest.mark.parametrize("covariance", COVARIANCES)
class TestDegenerate:
    @pytest.mark.slow_after(3)
    def test_one_row_per_class(self, covariance, estimate):
        X, y, new = made(9, sizes=(1, 1, 1))
        expected = joint_log_prob(X, y, with_holes(new), covariance, estimate)
        found = fitted(X, y, covariance, estimate).predict_joint_log_proba(with_holes(new))
        np.testing.assert_allclose(found, expected, rtol=1e-11)

    @pytest.mark.slow_after(4)
    def test_more_columns_than_rows(self, covariance, estimate):
        X, y, new = made(10, sizes=(3, 5), d=20)
        expected = joint_log_prob(X, y, with_holes(new), covariance, estimate)
        found = fitted(X, y, covariance, estimate).predict_joint_log_proba(with_holes(new))
        np.testing.assert_allclose(found, expected, rtol=1e-10)

    @pytest.mark.slow_after(4)
    def test_duplicated_columns(self, covariance, estimate):
        X, y, new = made(11)
        X, new = X[:, [0, 1, 0, 2, 2, 2]], new[:, [0, 1, 0, 2, 2, 2]]
        expected = joint_log_prob(X, y, with_holes(new), covariance, estimate)
        found = fitted(X, y, covariance, estimate).predict_joint_log_proba(with_holes(new))
        np.testing.assert_allclose(found, expected, rtol=1e-10)

    @pytest.mark.slow_after(1)
    def test_a_constant_column_says_nothing(self, covariance, estimate):
        X, y, new = made(12)
        for constant in (0.0, 5.3, 1e8 / 3):
            wide = np.insert(X, 1, constant, axis=1)
            model = fitted(wide, y, covariance, estimate)
            assert model.constant_columns_ == [1]
            rows = np.insert(with_holes(new), 1, constant, axis=1)
            expected = model.predict_joint_log_proba(rows)
            assert np.isfinite(expected).all()
            for other in (constant + 1, -1e9, np.nan):
                rows[:, 1] = other
                np.testing.assert_array_equal(model.predict_joint_log_proba(rows), expected)
            if estimate == "bayes" and covariance in PER_COLUMN:  # a map prior weighs more, the more columns there are
                alone = fitted(X, y, covariance, estimate).predict_joint_log_proba(with_holes(new))
                np.testing.assert_allclose(expected, alone, rtol=1e-12)
            scaled = fitted(1e-5 * wide, y, covariance, estimate)  # no unit of its own comes in
            np.testing.assert_allclose(scaled.predict_proba(1e-5 * rows), model.predict_proba(rows), rtol=1e-8)
            drawn, _ = model.sample(5, random_state=0)
            np.testing.assert_allclose(drawn[:, 1], constant, rtol=1e-15)

    def test_all_columns_constant(self, covariance, estimate):
        model = fitted(np.full((6, 2), 3.0), [0, 0, 0, 0, 1, 1], covariance, estimate)
        assert model.constant_columns_ == [0, 1]
        shares = [5 / 8, 3 / 8] if estimate in ("map", "bayes") else [4 / 6, 2 / 6]
        np.testing.assert_allclose(model.predict_proba([[3.0, 9.0]]), [shares], rtol=1e-14)

    @pytest.mark.slow_after(3)
    def test_a_column_constant_within_a_class(self, covariance, estimate):
        X, y, new = made(13)
        X[y == 1, 2] = 0.5
        expected = joint_log_prob(X, y, new, covariance, estimate)
        found = fitted(X, y, covariance, estimate).predict_joint_log_proba(new)
        np.testing.assert_allclose(found, expected, rtol=1e-10)

    @pytest.mark.slow_after(4)
    def test_one_class(self, covariance, estimate):
        X, _, new = made(14)
        model = fitted(X, np.zeros(len(X), int), covariance, estimate)
        assert (model.predict_proba(with_holes(new)) == 1).all()
        expected = joint_log_prob(X, np.zeros(len(X), int), new, covariance, estimate)[:, 0]
        np.testing.assert_allclose(model.score_samples(new), expected, rtol=1e-11)


class TestSingular:
    """Maximum likelihood has no density where rows span less than the space; the error says where and what to try."""

    def test_a_class_with_too_few_rows_is_named(self):
        X, _, new = made(15, sizes=(8, 3), d=4)
        y = np.array(["enough"] * 8 + ["few"] * 3)
        words = (
            r"covariance of class 'few' is singular \(3 rows, 4 columns\)(.|\n)*estimate='bayes' or 'map'(.|\n)*tied"
        )
        for estimate in ("mle", "unbiased"):
            with pytest.raises(EstimateError, match=words):
                fitted(X, y, "full", estimate).predict(new)
            assert np.isfinite(fitted(X, y, "tied", estimate).predict_joint_log_proba(new)).all()
        assert np.isfinite(fitted(X, y).predict_joint_log_proba(new)).all()

    def test_a_shared_covariance_is_everybody_s(self):
        X, y, new = made(16, sizes=(3, 3), d=5)
        with pytest.raises(
            EstimateError, match=r"covariance of all classes together is singular \(6 rows, 5 columns\)"
        ):
            fitted(X, y, "tied", "mle").predict(new)

    def test_duplicated_columns_are_singular_whatever_their_units(self):
        X, y, _ = made(17)
        for scale in (1.0, 1e-7, 1e9):
            with pytest.raises(EstimateError, match="covariance of class 0 is singular"):
                fitted(np.column_stack([X, scale * X[:, 0]]), y, "full", "mle").predict_proba(np.zeros((1, 4)))

    def test_a_flat_column_is_named_with_its_class(self):
        X, y, new = made(18)
        X[y == 2, 1] = 4.0
        with pytest.raises(EstimateError, match="variance of column 1 in class 2 is 0"):
            fitted(X, y, "diagonal", "mle").predict(new)
        with pytest.raises(EstimateError, match="covariance of class 2 is singular"):
            fitted(X, y, "full", "mle").predict(new)
        assert np.isfinite(fitted(X, y, "spherical", "mle").predict_joint_log_proba(new)).all()

    def test_strongly_but_not_perfectly_correlated_columns_are_fine(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 2)), np.arange(200) % 2
        X[:, 1] = X[:, 0] + 1e-4 * X[:, 1]
        expected = joint_log_prob(X, y, X[:9], "full", "mle")
        np.testing.assert_allclose(fitted(X, y, "full", "mle").predict_joint_log_proba(X[:9]), expected, rtol=1e-6)


def test_what_cannot_be_counted_is_refused():
    X, y, _ = made(19)
    bad = X.copy()
    bad[3, 1] = np.inf
    with pytest.raises(DataError, match="found inf in row 3, column 1"):
        fitted(bad, y)
    with pytest.raises(DataError, match="found inf in row 3, column 1"):
        fitted(X, y).predict(bad)
    bad[5, 0] = np.nan  # a missing cell elsewhere does not hide it
    with pytest.raises(DataError, match="found inf in row 3, column 1"):
        fitted(bad, y)
    with pytest.raises(DataError, match="column 'b' is a categorical column"):
        tb.GaussianDiscriminant().fit({"a": [1.0, 2.0], "b": ["x", "y"]}, [0, 1])
    with pytest.raises(DataError, match="X has 2 features, but GaussianDiscriminant is expecting 3"):
        fitted(X, y).predict(X[:, :2])


@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "tied_diagonal", "spherical"])
@pytest.mark.parametrize("share", [1.0, 0.7])
@pytest.mark.parametrize("constant", [3.0, 0.1])
def test_rows_with_a_constant_column_and_fractional_weights_are_forgotten(covariance, share, constant):
    y = np.arange(40) % 2
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, weight = np.column_stack([np.full(40, constant), rng.normal(size=40)]), 3.0 * rng.random(40)
        model = tb.GaussianDiscriminant(covariance).fit(X, y, sample_weight=weight)
        model.forget(X[20:], y[20:], sample_weight=share * weight[20:])
        left = np.concatenate([weight[:20], (1.0 - share) * weight[20:]])
        again = tb.GaussianDiscriminant(covariance).fit(X, y, sample_weight=left)
        np.testing.assert_array_equal(model.constant_columns_, again.constant_columns_)
        np.testing.assert_allclose(model.predict_proba(X), again.predict_proba(X), rtol=1e-9)
        if share == 1.0:
            model.forget(X[:20], y[:20], sample_weight=weight[:20])
            assert not any(statistic.group_weights().any() for statistic in model.tally_.statistics)
