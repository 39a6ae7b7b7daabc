"""Rows without labels: refused, skipped, or used by EM, whatever stands for a missing label."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, LabelError, NotForgettableError

K = np.repeat([0, 1], 20)
HIDDEN = np.arange(40) % 2 == 0
X = np.random.default_rng(0).normal(5.0 * K[:, None], 1.0, (40, 2))
MARKED = np.where(HIDDEN, -1, K)


def em(y, rows=X, **options):
    return tb.NaiveBayes(unlabeled="em", **options).fit(rows, y)


def objects(labels, missing):
    y = np.array([labels[k] for k in K], dtype=object)
    y[HIDDEN] = [missing] * HIDDEN.sum()
    return y


TARGETS = {
    "None": (objects([0, 1], None), None, [0, 1]),
    "NaN among objects": (objects([0, 1], np.nan), None, [0, 1]),
    "NaN among floats": (np.where(HIDDEN, np.nan, K), None, [0, 1]),
    "NaN, named too": (np.where(HIDDEN, np.nan, K), np.nan, [0, 1]),
    "pd.NA": (objects([3, 7], pd.NA), None, [3, 7]),
    "pd.NA, named too": (objects([3, 7], pd.NA), pd.NA, [3, 7]),
    "-1": (MARKED, -1, [0, 1]),
    "-1, of NumPy": (MARKED, np.int64(-1), [0, 1]),
    "-1 among floats": (MARKED.astype(float), -1, [0, 1]),
    "?": (np.where(HIDDEN, "?", np.array(["a", "b"])[K]), "?", ["a", "b"]),
    "empty string": (np.where(HIDDEN, "", np.array(["a", "b"])[K]), "", ["a", "b"]),
    "None among strings": (objects(["a", "b"], None), None, ["a", "b"]),
    "NaN among strings": (objects(["a", "b"], np.nan), None, ["a", "b"]),
    "NaN in a list of strings": (objects(["a", "b"], np.nan).tolist(), None, ["a", "b"]),
    "-1 among strings": (objects(["a", "b"], -1), -1, ["a", "b"]),
    "-1 in a list of strings": (objects(["a", "b"], -1).tolist(), -1, ["a", "b"]),
    "? among numbers": (objects([0, 1], "?"), "?", [0, 1]),
    "None among booleans": (objects([False, True], None), None, [False, True]),
    "pandas booleans": (pd.Series(objects([False, True], None)).astype("boolean"), None, [False, True]),
    "pandas Int64": (pd.Series(objects([3, 7], None)).astype("Int64"), None, [3, 7]),
    "pandas Series of floats": (pd.Series(np.where(HIDDEN, np.nan, K)), None, [0, 1]),
    "pandas categories": (pd.Series(objects(["a", "b"], None)).astype("category"), None, ["a", "b"]),
    "polars": (pl.Series([None if h else int(k) for h, k in zip(HIDDEN, K, strict=True)]), None, [0, 1]),
    "list": (objects([0, 1], None).tolist(), None, [0, 1]),
}


class TestWhatIsMissing:
    @pytest.mark.parametrize("case", TARGETS)
    @pytest.mark.parametrize("unlabeled", ["em", "skip"])
    def test_in_any_type(self, case, unlabeled):
        y, missing_label, levels = TARGETS[case]
        model = tb.NaiveBayes(unlabeled=unlabeled, missing_label=missing_label).fit(X, y)
        assert model.classes_.tolist() == levels
        assert type(model.classes_.tolist()[0]) in (type(levels[0]), float)
        assert (model.predict(X) == model.classes_[K]).all()
        weight = 40 if unlabeled == "em" else 20
        assert model.tally_.statistics[0].table.sum() == pytest.approx(weight)
        assert model.tally_.soft == (unlabeled == "em")

    @pytest.mark.parametrize("case", ["None", "-1", "NaN in a list of strings", "-1 among strings"])
    def test_is_refused_without_a_word_on_it(self, case):
        y, missing_label, _ = TARGETS[case]
        with pytest.raises(LabelError, match=r"Input y contains NaN.*row 0 is missing \(20 of 40(.|\n)*'em' or 'skip'"):
            tb.NaiveBayes(missing_label=missing_label).fit(X, y)

    def test_true_is_not_1(self):
        labels = K.astype(bool)
        assert em(labels, missing_label=1).tally_ == tb.NaiveBayes().fit(X, labels).tally_
        assert em(K, missing_label=True).tally_ == tb.NaiveBayes().fit(X, K).tally_

    def test_a_marker_that_does_not_occur_changes_nothing(self):
        for marker in (-1, "?", np.nan):
            assert em(K, missing_label=marker).tally_ == tb.NaiveBayes().fit(X, K).tally_

    @pytest.mark.parametrize("marker", [[-1], {}, (1, 2)])
    def test_is_a_label(self, marker):
        with pytest.raises(DataError, match=r"missing_label is .*expected a label"):
            em(MARKED, missing_label=marker)

    @pytest.mark.parametrize("marker", [np.nan, pd.NA])
    def test_travels_and_adds(self, marker, tmp_path):
        first, second = (em(objects([0, 1], marker), missing_label=marker) for _ in range(2))
        assert (first + second).tally_.soft
        first.save(tmp_path / "model")
        assert tb.load(tmp_path / "model").tally_ == first.tally_
        assert clone(first).missing_label is marker


class TestByName:
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": np.where(HIDDEN, "u", "v"), "w": 1.0 + K})

    @pytest.mark.parametrize("of", ["pandas", "polars", "records"])
    def test_the_target_and_the_weights_are_columns(self, of):
        whole = self.frame.assign(t=objects(["x", "y"], None))
        rows = {"pandas": whole, "polars": pl.from_pandas(whole), "records": whole.to_dict("records")}[of]
        model = tb.NaiveBayes(unlabeled="em").fit(rows, "t", "w")
        apart = tb.NaiveBayes(unlabeled="em").fit(self.frame.drop(columns="w"), whole["t"], whole["w"])
        assert model.classes_.tolist() == ["x", "y"]
        np.testing.assert_allclose(model.history_, apart.history_, rtol=1e-12)
        np.testing.assert_allclose(model.predict_proba(rows), apart.predict_proba(self.frame.drop(columns="w")))

    def test_numbers_with_gaps(self):
        model = tb.NaiveBayes(unlabeled="em").fit(self.frame.assign(t=np.where(HIDDEN, np.nan, K)), "t", "w")
        assert model.classes_.tolist() == [0, 1]


class TestSkip:
    def test_is_as_if_they_were_not_there(self):
        weight = np.random.default_rng(1).uniform(0.5, 2, 40)
        model = tb.NaiveBayes(unlabeled="skip", missing_label=-1).fit(X, MARKED, weight)
        assert model.tally_ == tb.NaiveBayes().fit(X[~HIDDEN], K[~HIDDEN], weight[~HIDDEN]).tally_
        assert (model.history_, model.objective_, model.converged_) == ([], None, True)

    def test_holds_for_more_rows_and_fewer(self):
        model = tb.NaiveBayes(unlabeled="skip", missing_label=-1).partial_fit(X[:21], MARKED[:21])
        model.partial_fit(X[21:], MARKED[21:])
        whole = tb.NaiveBayes(unlabeled="skip", missing_label=-1).fit(X, MARKED)
        assert model.tally_.isclose(whole.tally_)
        model.forget(X[21:], MARKED[21:])
        assert model.tally_.isclose(tb.NaiveBayes().fit(X[:21][~HIDDEN[:21]], K[:21][~HIDDEN[:21]]).tally_)

    def test_needs_a_label(self):
        with pytest.raises(DataError, match="no row has a label"):
            tb.NaiveBayes(unlabeled="skip", missing_label=-1).fit(X, np.full(40, -1))


class TestExpectation:
    def test_without_rows_to_expect_it_is_counting(self):
        weightless = np.where(HIDDEN, 0.0, 1.0)
        plain = tb.NaiveBayes().fit(X[~HIDDEN], K[~HIDDEN])
        for model in (
            em(K[~HIDDEN], X[~HIDDEN]),
            em(K[~HIDDEN], X[~HIDDEN], n_classes=2),
            tb.NaiveBayes(unlabeled="em", missing_label=-1).fit(X, MARKED, weightless),
        ):
            assert model.tally_ == plain.tally_
            assert not model.tally_.soft
            assert (model.history_, model.objective_, model.converged_) == ([], None, True)
        model.forget(X[~HIDDEN][:2], K[~HIDDEN][:2])

    def test_weightless_labels_are_no_labels(self):
        model = tb.NaiveBayes(unlabeled="em", missing_label=-1, n_classes=2, random_state=0)
        model.fit(X, MARKED, HIDDEN * 1.0)
        assert model.tally_.statistics[0].table.sum() == pytest.approx(20)
        with pytest.raises(DataError, match=r"no row has a label(.|\n)*Pass n_classes"):
            model.set_params(n_classes=None).fit(X, MARKED, HIDDEN * 1.0)
        with pytest.raises(DataError, match="weight of every row is zero"):
            model.fit(X, MARKED, np.zeros(40))

    @pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
    def test_a_single_label_of_every_class_is_enough(self, estimate):
        labels = np.where(np.isin(np.arange(40), [3, 30]), K, -1)
        for model in (tb.NaiveBayes(), tb.GaussianDiscriminant()):
            model.set_params(unlabeled="em", missing_label=-1, estimate=estimate).fit(X, labels)
            assert (model.predict(X) == K).all()

    def test_helps_where_labels_are_few(self):
        rng = np.random.default_rng(3)
        k = rng.integers(0, 2, 1000)
        rows = rng.normal(1.5 * k[:, None], 1.0, (1000, 6))
        few = np.where(np.isin(np.arange(1000), [*np.flatnonzero(k)[:3], *np.flatnonzero(1 - k)[:3]]), k, -1)
        skipped = tb.NaiveBayes(unlabeled="skip", missing_label=-1).fit(rows, few)
        assert em(few, rows, missing_label=-1).score(rows, k) > skipped.score(rows, k) + 0.02

    def test_levels_seen_only_without_a_label(self):
        rows = {"c": ["a", "b", "a", "b", "z", "z"]}
        for estimate in ("bayes", "mle"):
            model = tb.NaiveBayes(unlabeled="em", estimate=estimate).fit(rows, [0, 1, 0, 1, None, None])
            assert set(model.tally_.domains["c"].levels) == {"a", "b", "z"}
            assert model.tally_.statistics[1].table.sum() == pytest.approx(6)
            np.testing.assert_allclose(model.predict_proba({"c": ["z"]}), [[0.5, 0.5]], atol=1e-6)

    def test_little_weight_is_like_none_and_much_like_rows(self):
        skipped = tb.NaiveBayes(unlabeled="skip", missing_label=-1).fit(X, MARKED)
        light = em(MARKED, missing_label=-1, unlabeled_weight=1e-9)
        np.testing.assert_allclose(light.predict_proba(X), skipped.predict_proba(X), atol=1e-6)
        heavy = em(MARKED, missing_label=-1, unlabeled_weight=3.0)
        thrice = np.where(HIDDEN, 3, 1)
        repeated = em(np.repeat(MARKED, thrice), np.repeat(X, thrice, axis=0), missing_label=-1)
        np.testing.assert_allclose(heavy.history_, repeated.history_, rtol=1e-11)
        assert heavy.tally_.isclose(repeated.tally_, 1e-10)

    @pytest.mark.parametrize("estimate", ["mle", "unbiased", "map", "bayes"])
    def test_the_estimate_is_made_once_at_the_end(self, estimate):
        """What EM leaves is a tally, which every estimate reads in its own way."""
        base = em(MARKED, missing_label=-1, estimate="bayes" if estimate == "map" else estimate)
        other = base.reestimate(estimate=estimate)
        expected = tb.NaiveBayes(estimate=estimate).fit_tally(base.tally_)
        np.testing.assert_array_equal(other.predict_proba(X), expected.predict_proba(X))
        assert other.history_ == base.history_

    def test_order_and_units_do_not_matter(self):
        rng = np.random.default_rng(5)
        k, order = rng.integers(0, 2, 60), rng.permutation(60)
        rows, labels = rng.normal(1.5 * k[:, None], 1.0, (60, 2)), np.where(rng.random(60) < 0.5, -1, k)
        for model in (tb.NaiveBayes(), tb.GaussianDiscriminant("tied")):
            model.set_params(unlabeled="em", missing_label=-1)
            first = clone(model).fit(rows, labels)
            again = clone(model).fit(rows[order], labels[order])
            np.testing.assert_allclose(again.history_, first.history_, rtol=1e-10)
            far = clone(model).fit(rows * [1e-3, 1e4] + [1e9, 0.0], labels)
            probabilities = far.predict_proba(rows * [1e-3, 1e4] + [1e9, 0.0])
            np.testing.assert_allclose(probabilities, first.predict_proba(rows), atol=2e-3)  # 1e9 leaves 4 digits

    def test_says_how_it_ended(self):
        rng = np.random.default_rng(6)
        k = rng.integers(0, 2, 200)
        rows, labels = rng.normal(k[:, None], 1.0, (200, 1)), np.where(np.arange(200) < 8, k, -1)
        with pytest.warns(ConvergenceWarning, match="did not converge after 2 iterations") as caught:
            model = em(labels, rows, missing_label=-1, max_iter=2)
        assert caught[0].filename == __file__
        assert (len(model.history_), model.converged_) == (2, False)
        model = em(labels, rows, missing_label=-1, tol=1e-4, max_iter=10_000)
        assert model.converged_
        assert model.history_[-1] - model.history_[-2] < 1e-4 * 200 <= model.history_[-2] - model.history_[-3]
        assert model.objective_ == "log posterior"
        assert em(labels, rows, missing_label=-1, estimate="mle", max_iter=10_000).objective_ == "log likelihood"

    def test_a_dirichlet_over_the_classes_makes_it_a_posterior(self):
        model = em(MARKED, missing_label=-1, estimate="mle", class_prior=tb.Dirichlet(5.0))
        assert model.objective_ == "log posterior"

    @pytest.mark.slow
    def test_memory_does_not_grow_with_classes_times_rows(self):
        def peak(n):
            rng = np.random.default_rng(0)
            k = rng.integers(0, 80, n)
            rows, labels = rng.normal(3.0 * k[:, None], 1.0, (n, 2)), np.where(np.arange(n) % 2, -1, k)
            tracemalloc.start()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                em(labels, rows, missing_label=-1, max_iter=1)
            top = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return top

        shares = 100_000 * 80 * 8  # of the rows without a label that one has more than the other
        assert peak(400_000) - peak(200_000) < 0.3 * shares


class TestMoreClasses:
    def test_are_found_and_named(self):
        rng = np.random.default_rng(0)
        k = np.repeat([0, 1, 2], 30)
        rows = rng.normal(8.0 * k[:, None], 1.0, (90, 2))
        for labels, missing, names in (
            (np.where((np.arange(90) % 3 == 0) & (k < 2), k, -1), -1, [0, 1, 2]),
            (np.where((np.arange(90) % 3 == 0) & (k < 2), k, 2), 2, [0, 1, 3]),  # 2 is taken
            (np.where((np.arange(90) % 3 == 0) & (k < 2), np.array(["b", "new 1", ""])[k], ""), "", None),
        ):
            model = em(labels, rows, missing_label=missing, n_classes=3, n_init=3, random_state=0)
            assert model.classes_.tolist() == (names or ["b", "new 1", "new 2"])
            assert (model.predict(rows) == model.classes_[k]).all()

    def test_all_of_them(self):
        model = em([None] * 40, n_classes=2, random_state=0)
        assert model.classes_.tolist() == [0, 1]
        found = model.predict(X)
        assert len(set(found[:20])) == len(set(found[20:])) == 1
        assert found[0] != found[-1]

    def test_of_booleans_there_are_two(self):
        labels = np.array([True] * 10 + [None] * 30, dtype=object)
        model = em(labels, n_classes=2, random_state=0)
        assert model.classes_.tolist() == [False, True]
        assert model.predict(X).tolist() == (K == 0).tolist()
        with pytest.raises(DataError, match="no classes besides False and True"):
            em(objects([False, True], None), n_classes=3)

    def test_more_than_rows(self):
        model = em(MARKED, missing_label=-1, n_classes=50, random_state=0)
        assert len(model.classes_) == 50
        assert np.isfinite(model.class_log_prior_).all()

    @pytest.mark.parametrize(
        ("labels", "options", "message"),
        [
            (MARKED, {"n_classes": 1}, "n_classes is 1; expected a whole number of at least 2, the classes that have"),
            (MARKED, {"n_classes": 2.5}, "n_classes is 2.5; expected a whole number"),
            (MARKED, {"n_classes": "a"}, "n_classes is 'a'; expected a whole number"),
            (K, {"n_classes": 3}, "n_classes is 3, but every row has a label and these show 2 classes"),
            (K, {"n_classes": 3, "unlabeled": None}, "n_classes=3 needs rows without labels"),
            (np.full(40, -1), {}, "no row has a label"),
            (MARKED, {"max_iter": 0}, "max_iter is 0; expected a whole number"),
            (MARKED, {"max_iter": 2.5}, "max_iter is 2.5; expected a whole number"),
            (MARKED, {"n_init": "x"}, "n_init is 'x'; expected a whole number"),
            (MARKED, {"tol": -1.0}, "tol is -1.0; expected a number of at least 0"),
            (MARKED, {"tol": np.nan}, "tol is nan; expected a number of at least 0"),
            (MARKED, {"unlabeled_weight": 0}, "unlabeled_weight is 0; expected a positive number"),
            (MARKED, {"unlabeled_weight": "x"}, "unlabeled_weight is 'x'; expected a positive number"),
            (MARKED, {"unlabeled": "EM"}, "unlabeled is 'EM'; expected 'em', 'skip' or None"),
        ],
        ids=str,
    )
    def test_settings_that_cannot_be(self, labels, options, message):
        with pytest.raises((DataError, EstimateError), match=message):
            tb.NaiveBayes(**({"unlabeled": "em", "missing_label": -1} | options)).fit(X, labels)

    def test_an_estimate_that_is_none(self):
        with pytest.raises(EstimateError, match="estimate is 'best'"):
            em(MARKED, missing_label=-1, estimate="best")


class TestAfterwards:
    def test_nothing_can_be_taken_out(self):
        model = em(MARKED, missing_label=-1)
        before, history = model.tally_, model.history_
        with pytest.raises(NotForgettableError, match="EM imputed"):
            model.forget(X[~HIDDEN], K[~HIDDEN])
        with pytest.raises(NotForgettableError):
            model.tally_ - model.tally_
        assert model.tally_ is before
        assert model.history_ == history

    def test_labeled_rows_can_be_added(self):
        model = em(MARKED, missing_label=-1)
        total = model + em(MARKED, missing_label=-1)
        assert total.tally_.isclose(model.tally_ + model.tally_)
        assert total.tally_.soft
        model.partial_fit(X[:4], K[:4])
        for changed in (total, model, em(MARKED, missing_label=-1).drop_class(1)):
            assert (changed.history_, changed.objective_) == ([], None)  # EM climbed for other rows

    @pytest.mark.parametrize("y", [MARKED, np.where(HIDDEN, np.nan, K)], ids=["marker", "NaN"])
    def test_more_rows_without_labels_are_refused(self, y):
        model = em(MARKED, missing_label=-1)
        before = model.tally_
        for call in (model.partial_fit, model.forget):
            with pytest.raises(LabelError, match=r"row 0 is missing(.|\n)*Use fit with all rows at once"):
                call(X, y)
        for label in (None, np.nan, -1):
            with pytest.raises(LabelError, match="label of row 0 is missing"):
                model.add_class(label, X)
        assert model.tally_ is before
        assert model.history_

    def test_classes_can_be_declared(self):
        model = tb.NaiveBayes(unlabeled="em", missing_label=-1).partial_fit(X, MARKED, classes=[0, 1, 2])
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.tally_.soft
        assert ((model.predict_proba(X)[:, 2] > 0) & (model.predict(X) != 2)).all()

    @pytest.mark.slow
    def test_rows_are_left_out_by_fitting_again(self):
        model = em(MARKED, missing_label=-1)
        for score in (tb.leave_one_out, tb.cross_validate):
            for y in (MARKED, np.where(HIDDEN, np.nan, K)):
                for unlabeled in ("em", "skip"):
                    found = score(tb.NaiveBayes(unlabeled=unlabeled, missing_label=-1), X, y)
                    assert (found.accuracy.value, found.refitted) == (1.0, unlabeled == "em")
                    np.testing.assert_array_equal(found.fold < 0, HIDDEN)
            with pytest.raises(LabelError, match="Pass unlabeled='em' or 'skip'"):
                score(tb.NaiveBayes(missing_label=-1), X, MARKED)
            assert score(model, X[~HIDDEN], K[~HIDDEN]).accuracy.value == 1.0
        with pytest.raises(EstimateError, match="has no evidence: EM filled in"):
            model.log_evidence()

    def test_it_is_kept_in_files_and_pickles(self, tmp_path):
        model = em(MARKED, missing_label=-1)
        model.save(tmp_path / "model")
        for other in (tb.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), model.reestimate()):
            assert other.tally_ == model.tally_
            assert other.tally_.soft
            assert other.history_ == model.history_
            assert other.objective_ == "log posterior"
            assert other.converged_
        assert clone(model).get_params() == model.get_params()

    def test_same_seed_same_bits(self):
        first, second = (em(MARKED, missing_label=-1, n_classes=4, n_init=2, random_state=3) for _ in range(2))
        assert first.tally_ == second.tally_
        assert first.history_ == second.history_


@parametrize_with_checks([tb.NaiveBayes(unlabeled="em"), tb.GaussianDiscriminant(unlabeled="skip")])
def test_keeps_the_contract(estimator, check):
    check(estimator)
