"""Learning curves: the same splits for all models, one pass for ours, classes that are not there yet, crossings."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifier, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import tallybayes as tb
from tallybayes.datasets import make_penguins
from tallybayes.evaluation.validation.learning_curves import penalty_of
from tallybayes.evaluation.validation.prefix_models import is_incremental, models_of_prefixes

X, y = load_iris(return_X_y=True, as_frame=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[y]
BIRDS = pd.DataFrame(make_penguins(200))
SPECIES = BIRDS.pop("species").to_numpy().astype(str)
MEASURED = BIRDS[["bill_mm", "mass_g"]]
SIZES = np.array([1, 7, 20, 60, 160])
TEXTS = [f"{'win money' if k % 3 else 'see you'} word{k % 7} {k}" for k in range(200)]


def _pairs(n, seed):
    """Two classes whose columns come in pairs that are correlated: naive Bayes has a floor above the optimum."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n)
    noise = rng.normal(size=(n, 20, 2)) @ np.linalg.cholesky([[1.0, 0.3], [0.3, 1.0]]).T
    return noise.reshape(n, 40) + np.where(codes == 1, 0.5, -0.5)[:, None] * np.tile([0.5, 0.25], 20), codes


@pytest.mark.slow
def test_generative_models_are_ahead_while_rows_are_few():
    models = {"naive": tb.NaiveBayes(), "logistic": LogisticRegression(C=1e4, max_iter=2000)}
    curves = tb.learning_curves(models, *_pairs(4000, 0), [80, 320], n_repeats=5)
    assert (curves.error[0].mean(axis=-1) < curves.error[1].mean(axis=-1)).all()
    assert curves.error[0, -1].mean() == pytest.approx(0.140, abs=0.02)  # the exact error of the rule is .140
    assert curves.crossings() == [(80, "naive")]
    assert "fewest errors: naive at every size" in repr(curves)
    assert "logistic, C = 10000" in repr(curves)
    assert "logistic, C = 10000" in curves._repr_html_()


# ---- One pass --------------------------------------------------------------------------------------------------------

OURS = {
    "naive Bayes": (tb.NaiveBayes(), BIRDS, False),
    "naive Bayes, maximum likelihood": (tb.NaiveBayes(estimate="mle"), BIRDS[["island"]], False),
    "naive Bayes, mixed": (tb.NaiveBayes({"eggs": tb.Poisson(), ...: "auto"}, prior=1), BIRDS, False),
    "naive Bayes, a covariance": (tb.NaiveBayes(tb.MultivariateGaussian()), MEASURED, True),  # some cells are missing
    "naive Bayes, missing is a value": (tb.NaiveBayes({"mass_g": tb.WithMissing(tb.Gaussian())}), BIRDS, False),
    "naive Bayes, words": (tb.NaiveBayes(tb.Text()), TEXTS, False),
    "naive Bayes, chosen families": (tb.NaiveBayes("suggest"), BIRDS, True),
    "naive Bayes, one chosen": (tb.NaiveBayes({"mass_g": "suggest", ...: "auto"}), BIRDS, True),
    "naive Bayes, calibrated": (tb.NaiveBayes(calibration="temperature"), BIRDS, True),
    "discriminant, selected": (tb.GaussianDiscriminant(), MEASURED.fillna(0), True),
    "discriminant": (tb.GaussianDiscriminant("full"), MEASURED.fillna(0), False),
    "discriminant, tied": (tb.GaussianDiscriminant("tied"), MEASURED.fillna(0), False),
    "discriminant, shrunk": (tb.GaussianDiscriminant("full", shrinkage="auto"), MEASURED.fillna(0), False),
    "discriminant, gaps": (tb.GaussianDiscriminant("tied"), MEASURED, True),
    "nearest mean": (tb.NearestClassMean(), MEASURED.fillna(0), False),
    "nearest mean, learned": (tb.NearestClassMean("learned", max_iter=1000), MEASURED.fillna(0), True),
    "one dependence, labels": (tb.AveragedOneDependence(tb.Categorical()), BIRDS[["island", "sex", "eggs"]], False),
    "one dependence, bins": (tb.AveragedOneDependence(), BIRDS, True),
    "tree": (tb.TreeAugmentedNaiveBayes(tb.Categorical()), BIRDS[["island", "sex", "eggs"]], False),
    "tree, bins": (tb.TreeAugmentedNaiveBayes(), BIRDS, True),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("case", OURS)
def test_what_is_counted_once_is_what_fitting_the_first_rows_gives(case):
    model, rows, refitted = OURS[case]
    order = np.random.default_rng(0).permutation(200)[:160]
    frame = isinstance(rows, pd.DataFrame)
    one = rows.iloc[:1] if frame else rows[:1]
    found = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of metrics that could be better, and calibrations by few rows
        for size, learned in zip(SIZES, models_of_prefixes(model, rows, SPECIES, order, SIZES, one), strict=True):
            first = order[:size]
            if learned.refitted and len(np.unique(SPECIES[first])) == 1:
                continue  # nobody is asked
            again = clone(model).fit(rows.iloc[first] if frame else [rows[k] for k in first], SPECIES[first])
            np.testing.assert_array_equal(learned.model.classes_, again.classes_)
            np.testing.assert_allclose(learned.model.predict_proba(rows), again.predict_proba(rows), rtol=1e-9)
            found = max(found, int(learned.refitted))
    assert bool(found) is refitted


def test_every_row_is_counted_once(monkeypatch):
    seen = []
    before = tb.NaiveBayes.partial_fit

    def counting(self, rows, *rest, **more):
        seen.append(len(rows))
        return before(self, rows, *rest, **more)

    monkeypatch.setattr(tb.NaiveBayes, "partial_fit", counting)
    curves = tb.learning_curves({"ours": tb.NaiveBayes(), "theirs": GaussianNB()}, X, y, [10, 30, 120], n_repeats=2)
    assert seen == [10, 20, 90] * 2
    assert curves.refitted == [False, True]


def test_others_are_fitted_again():
    for model in (GaussianNB(), make_pipeline(StandardScaler(), tb.NaiveBayes()), tb.AutoClassifier()):
        assert not is_incremental(model)


def test_the_measures_are_those_of_an_evaluation():
    curves = tb.learning_curves({"ours": tb.NaiveBayes()}, X, LABELS, [50, 120], n_repeats=3, random_state=1)
    rng = np.random.default_rng(1)
    fold = tb.evaluation.validation.learning_curves.random_folds(y.to_numpy(), 5, rng)
    orders = [rng.permutation(np.flatnonzero(fold != split)) for split in range(3)]
    for split, order in enumerate(orders):
        model, test = tb.NaiveBayes().fit(X.iloc[order[:50]], LABELS[order[:50]]), fold == split
        result = tb.evaluate(model, X[test], LABELS[test])
        assert curves.error[0, 0, split] == pytest.approx(result.error_rate.value)
        assert curves.log_loss[0, 0, split] == pytest.approx(result.log_loss.value)
        assert curves.calibration_error[0, 0, split] == pytest.approx(result.calibration_error.value)
    assert (curves.fit_seconds > 0).all()
    assert np.bincount(y[fold == 0]).tolist() == [10, 10, 10]


def test_the_same_seed_gives_the_same_splits():
    first, second, other = (
        tb.learning_curves(tb.NaiveBayes(), X, y, [30], n_repeats=7, random_state=seed).log_loss for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    assert first.shape == (1, 1, 7)


# ---- Rows of any kind ------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "rows",
    [X, X.to_numpy(), pl.from_pandas(X), pa.Table.from_pandas(X), dict(X)],
    ids=["pandas", "numpy", "polars", "arrow", "dict"],
)
def test_rows_of_any_kind(rows):
    curves = tb.learning_curves(tb.NaiveBayes(), rows, LABELS, [30, 120], n_repeats=2)
    expected = tb.learning_curves(tb.NaiveBayes(), X, y, [30, 120], n_repeats=2)
    np.testing.assert_array_equal(curves.log_loss, expected.log_loss)
    assert curves.names == ["NaiveBayes"]


def test_labels_by_name_and_files(tmp_path):
    whole = X.assign(kind=LABELS)
    whole.to_csv(tmp_path / "iris.csv", index=False)
    models = {"ours": tb.NaiveBayes(), "theirs": GaussianNB()}
    expected = tb.learning_curves(models, X, LABELS, [30], n_repeats=2)
    for rows in (whole, pl.from_pandas(whole), dict(whole), whole.to_dict("records"), tmp_path / "iris.csv"):
        np.testing.assert_allclose(tb.learning_curves(models, rows, "kind", [30], n_repeats=2).error, expected.error)
    with pytest.raises(tb.DataError, match="no column 'sort'"):
        tb.learning_curves(tb.NaiveBayes(), whole, "sort")


@pytest.mark.slow
def test_sparse_rows():
    words = np.random.default_rng(0).poisson(1 + X.to_numpy())
    models = {"ours": tb.NaiveBayes(), "theirs": LogisticRegression(max_iter=5000)}
    expected = tb.learning_curves(models, csr_array(words), y, [60], n_repeats=2)
    found = tb.learning_curves(models, coo_array(words), y, [60], n_repeats=2)
    np.testing.assert_array_equal(found.log_loss, expected.log_loss)


@pytest.mark.slow
def test_a_class_that_is_not_there_yet_is_worth_one_row():
    models = {"ours": tb.NaiveBayes(tb.TiedGaussian()), "theirs": LogisticRegression(max_iter=5000)}
    curves = tb.learning_curves(models, X, LABELS, [1, 2, 6], n_repeats=5)
    np.testing.assert_allclose(curves.error[:, 0], 2 / 3)  # one row: its class is the only one
    np.testing.assert_allclose(curves.log_loss[:, 0], -(np.log(2 / 4) + 2 * np.log(1 / 4)) / 3)
    assert (curves.log_loss < 10).all()  # and nobody rules a class out


def test_sizes_double():
    assert tb.learning_curves(tb.NaiveBayes(), X, y, n_repeats=1).sizes.tolist() == [15, 30, 60, 120]


# ---- Crossings -------------------------------------------------------------------------------------------------------


def test_curves_cross():
    names, sizes = ["a", "b"], np.array([10, 20, 40])
    error = np.array([[[0.3], [0.2], [0.2]], [[0.4], [0.2], [0.1]]])
    curves = tb.LearningCurves(names, sizes, error, error[::-1])
    assert curves.crossings() == [(10, "a"), (40, "b")]
    assert curves.crossings("log_loss") == [(10, "b"), (40, "a")]
    assert curves.leader() == "a, b from 40 rows on"
    assert np.isnan(curves.to_frame()["error_se"]).all()
    with pytest.raises(tb.DataError, match=r"expected 'error' or 'log_loss'"):
        curves.crossings("calibration_error")


def test_noise_is_no_crossing():
    rng = np.random.default_rng(0)
    luck = rng.normal(0.2, 0.05, (1, 3, 50))
    error = np.concatenate([luck, luck + rng.normal([[0.01], [-1e-6], [-0.01]], 1e-3, (3, 50))[None]])
    assert error[1, 1].mean() < error[0, 1].mean()  # by less than its standard error
    curves = tb.LearningCurves(["a", "b"], np.array([10, 20, 40]), error, error)
    assert curves.crossings() == [(10, "a"), (40, "b")]
    later = tb.LearningCurves(["a", "b"], np.array([20, 40]), error[:, 1:], error[:, 1:])
    assert later.leader() == "b at every size"  # as far as can be told from noise
    luck = tb.LearningCurves(["a", "b"], np.array([20]), error[:, 1:2], error[:, 1:2])
    assert luck.crossings() == [(20, "b")]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (LogisticRegression(), "C = 1"),
        (make_pipeline(StandardScaler(), LogisticRegression(C=100.0)), "C = 100"),
        (LogisticRegression(C=np.inf), "no penalty"),
        (LogisticRegressionCV(), "penalty by cross-validation"),
        (GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}), "penalty by cross-validation"),
        (GridSearchCV(LogisticRegression(), {"tol": [0.1, 1]}), "C = 1"),
        (CalibratedClassifierCV(LinearSVC(C=0.5)), "C = 0.5"),
        (SVC(), "C = 1"),
        (SGDClassifier(), "alpha = 0.0001"),
        (SGDClassifier(penalty=None), "no penalty"),
        (RidgeClassifier(2.0), "alpha = 2"),
        (GaussianNB(), ""),
        (tb.NaiveBayes(), ""),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value or "none",
)
def test_penalties_are_stated(model, said):
    assert penalty_of(model) == said


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sizes": [0]}, "sizes is"),
        ({"sizes": [121]}, "from 1 to 120"),
        ({"sizes": []}, "sizes is"),
        ({"sizes": 50.5}, "sizes is 50.5"),
        ({"sizes": [0.1, 0.5]}, "sizes is"),
        ({"sizes": [1, 2.5]}, "whole numbers"),
        ({"n_repeats": 0}, "n_repeats is 0"),
        ({"n_repeats": True}, "n_repeats is True"),
    ],
)
def test_what_makes_no_sense(options, match):
    with pytest.raises(tb.DataError, match=match):
        tb.learning_curves(tb.NaiveBayes(), X, y, **options)
    with pytest.raises(tb.DataError, match="models is empty"):
        tb.learning_curves({}, X, y)
    with pytest.raises(tb.DataError, match=r"'svm' is LinearSVC; .*predict_proba"):
        tb.learning_curves({"svm": LinearSVC()}, X, y)


@pytest.mark.parametrize(
    "model",
    [tb.Mixture(2), tb.BayesianNetwork({}), tb.NaiveBayes, [tb.NaiveBayes()]],
    ids=["mixture", "network", "class", "list"],
)
def test_what_is_no_classifier_is_refused(model):
    with pytest.raises(
        tb.DataError, match=r"expected a classifier\.\n    (Pass several models as a mapping|Pass an instance)"
    ):
        tb.learning_curves(model, X, y)


@pytest.mark.parametrize("hole", [None, np.nan, pd.NA], ids=["None", "NaN", "NA"])
def test_missing_labels_are_no_class(hole):
    labels = LABELS.astype(object)
    labels[[3, 70]] = hole
    with pytest.raises(tb.LabelError, match="the labels of 2 rows are missing, the first that of row 3"):
        tb.learning_curves(tb.NaiveBayes(), X, labels)
    with pytest.raises(tb.LabelError, match="the labels of 50 rows are missing"):
        tb.learning_curves(tb.NaiveBayes(), X.assign(kind=y.where(y > 0)), "kind")


def test_few_rows():
    with pytest.raises(tb.DataError, match="there are 4 rows; expected at least 5"):
        tb.learning_curves(tb.NaiveBayes(), X[:4], y[:4])


def test_classes_whose_share_is_stated_exist_before_a_row_shows_them():
    model = tb.NaiveBayes(class_prior=dict.fromkeys(np.unique(LABELS).tolist(), 1 / 3))
    curves = tb.learning_curves(model, X, LABELS, [1, 100], n_repeats=2)
    assert curves.log_loss[0, 0].max() < 5
    assert curves.refitted == [False]


def test_a_wrong_row_is_the_error_of_the_fit():
    rows = X.to_numpy().copy()
    rows[3, 2] = np.inf
    with pytest.raises(ValueError, match="inf"):
        tb.learning_curves(tb.NaiveBayes(), rows, y, [100], n_repeats=1)


def test_log_loss_is_that_of_scikit_learn_where_all_classes_are_there():
    model = GaussianNB()
    curves = tb.learning_curves(model, X, y, [120], n_repeats=1)
    rng = np.random.default_rng(0)
    fold = tb.evaluation.validation.learning_curves.random_folds(y.to_numpy(), 5, rng)
    train = rng.permutation(np.flatnonzero(fold != 0))
    expected = log_loss(y[fold == 0], model.fit(X.iloc[train], y.iloc[train]).predict_proba(X[fold == 0]))
    assert curves.log_loss.item() == pytest.approx(expected)


# ---- The picture -----------------------------------------------------------------------------------------------------


def test_the_picture_is_a_table_too():
    curves = tb.learning_curves({"a $": tb.NaiveBayes(), "b": tb.GaussianDiscriminant()}, X, y, [30, 60], n_repeats=2)
    picture = curves.plot()
    pd.testing.assert_frame_equal(picture.to_frame(), curves.to_frame())
    titles = ["error", "log loss in nats", "calibration error", "seconds to fit"]
    assert [ax.get_title().split("\n")[0] for ax in picture.axes] == titles
    assert [ax.get_title().split("\n")[0] for ax in curves.plot("log_loss").axes] == ["log loss in nats"]
    assert list(curves.plot(["error"]).to_frame()) == ["model", "rows", "error", "error_se"]
    with pytest.raises(tb.DataError, match="what is 'accuracy'"):
        curves.plot("accuracy")


def test_the_crossing_is_drawn_where_the_curves_meet_and_the_penalty_above():
    error = np.array([[[0.3], [0.2], [0.2]], [[0.5], [0.3], [0.1]]])
    curves = tb.LearningCurves(["a", "b"], np.array([10, 20, 80]), error, error, penalties=["", "C = 1"])
    picture = curves.plot("error")
    text = picture.axes[0].get_title().split("\n")[1]
    assert text == "b better from about 40 rows"  # halfway from 20 to 80, on a logarithmic axis
    assert "b, C = 1" in picture.figure.get_suptitle().replace("\u00a0", " ")


def test_errors_are_never_cut_off_and_a_log_loss_only_where_it_would_hide_the_rest():
    error = np.array([[[0.3], [0.0], [0.0], [0.01]]])
    curves = tb.LearningCurves(["a"], np.array([10, 20, 40, 80]), error, np.array([[[90.0], [1.0], [1.0], [0.9]]]))
    errors, losses = curves.plot().axes
    assert errors.get_ylim()[1] > 0.3
    assert 1 < losses.get_ylim()[1] < 10


def test_targets_are_named_by_whole_numbers():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.integers(2, size=(60, 3)))
    found, expected = (
        tb.learning_curves(tb.NaiveBayes(), X, y, [20, 40], n_repeats=2)
        for X, y in ((rows, 2), (rows[[0, 1]], rows[2]))
    )
    np.testing.assert_array_equal(found.to_frame()["error"], expected.to_frame()["error"])
