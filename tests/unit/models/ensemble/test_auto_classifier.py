"""AutoClassifier: candidates scored by held-out rows, and their pool, one estimator that counts like others."""

import copy
import pickle
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import tallybayes as tb
from tallybayes.errors import DataError, LabelError
from tallybayes.estimation.resampling.folds import Folds, random_folds
from tallybayes.models.ensemble import candidate_models
from tallybayes.models.ensemble.candidate_models import CandidateModels
from tallybayes.models.ensemble.ensemble_spec import TREES
from tallybayes.models.ensemble.feature_views import NumericBlock, RawColumns
from tallybayes.models.ensemble.members import class_count
from tallybayes.models.ensemble.stacking import pooled_weights, stacking_weights
from tallybayes.models.inputs.family_selection import select_families_by_fold
from tallybayes.models.inputs.input_format import read_initial_rows
from tallybayes.warnings import CalibrationWarning


def mixed_table(n=160, seed=0):
    """Numbers, labels, cells that lack, a column that repeats another, one that is constant, one nobody knows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "size": rng.normal(y, 1.0),
            "count": rng.poisson(2 + y),
            "sky": np.where(rng.random(n) < 0.3 + 0.4 * y, "sun", "rain"),
            "flag": rng.random(n) < 0.5,
            "same": 7.0,
            "nobody": np.nan,
        }
    )
    frame["again"] = frame["size"]
    frame.loc[rng.random(n) < 0.3 + 0.4 * y, "count"] = np.nan  # its absence tells the class
    frame.loc[::9, "sky"] = None
    return frame, np.where(y == 1, "yes", "no")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X, y, tb.AutoClassifier().fit(X, y)


def test_it_beats_every_member_it_has(wine):
    X, y, model = wine
    losses = [one.loss for one in model.leaderboard_.tried]
    assert model.leaderboard_.loss <= min(losses) + 1e-3
    assert model.score(X, y) > 0.97
    weights = [member.spec.weight for member in model.members_]
    assert min(weights) >= 0.01
    assert weights == sorted(weights, reverse=True)
    assert len({member.spec.kind for member in model.members_}) == len(weights)
    alone = tb.AutoClassifier(single=True).fit(X, y)
    assert len(alone.members_) == 1
    assert alone.members_[0].spec.name == alone.leaderboard_.tried[0].name


def test_the_pool_is_the_weighted_product_of_its_members(wine):
    X, _, model = wine
    product = 1.0
    for spec, member in model.members_:
        log_p = spec.calibration.apply(member.predict_log_proba(spec.view.apply(_table(X))), (0, 1, 2))
        product = product * np.exp(log_p) ** spec.weight
    np.testing.assert_allclose(model.predict_proba(X), product / product.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


def _table(X):
    from tallybayes.models.inputs.features import open_features

    return open_features(X)


def test_weights_of_the_pool_maximize_the_penalized_likelihood():
    rng = np.random.default_rng(0)
    codes, weight = rng.integers(0, 3, 400), rng.integers(1, 3, 400).astype(float)
    scores = rng.normal(size=(400, 4, 3))
    scores[np.arange(400), :3, codes] += [[1.0, 2.0, 0.5]]  # the last member knows nothing
    proba = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    center = stacking_weights(np.log(proba[np.arange(400), :, codes]), weight)

    def loss(w):
        pooled = np.tensordot(np.log(proba), w, (1, 0))
        pooled -= np.log(np.exp(pooled).sum(axis=1, keepdims=True))
        return -(weight * pooled[np.arange(400), codes]).sum() + 50 * ((w - center) ** 2).sum()

    best = minimize(loss, center, bounds=[(0, None)] * 4, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 1e-15}).x
    np.testing.assert_allclose(pooled_weights(proba, codes, weight), best, atol=1e-3)
    few = pooled_weights(proba[:3], codes[:3], None)  # a few rows move the weights little
    truth = np.log(proba[np.arange(3), :, codes[:3]])
    np.testing.assert_allclose(few, stacking_weights(truth, None), atol=0.1)


def test_contributions_of_the_pool_sum_to_its_log_odds(wine):
    X, _, model = wine
    rows, y, mixed = _fitted()
    for one, features in ((model, X), (mixed, rows)):
        explained = one.explain(features)
        ordered = np.sort(one.predict_log_proba(features), axis=1)
        np.testing.assert_allclose(explained.log_odds, ordered[:, -1] - ordered[:, -2], atol=1e-9)
        np.testing.assert_allclose(explained.contributions.sum(axis=1), explained.log_odds, atol=1e-9)
        assert "(class prior)" in explained.columns
    assert set(mixed.explain(rows, y[0]).against) <= set(y)


def test_weights_are_the_best_there_are():
    rng = np.random.default_rng(0)
    log_truth = np.log(rng.beta(2, 1, (60, 3)))
    weight = rng.integers(0, 3, 60).astype(float)
    found = stacking_weights(log_truth, weight)

    def lost(free):
        w = np.exp(np.append(free, 0.0))
        w /= w.sum()
        return -(weight * np.log(np.exp(log_truth) @ w)).sum() - np.log(w).sum() / 3  # one row that all explain alike

    best = minimize(lost, np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x
    wanted = np.exp(np.append(best, 0.0))
    np.testing.assert_allclose(found, wanted / wanted.sum(), atol=1e-6)


def tried(frame, y, fold, weight=None):
    """Every candidate by its name, and the rows they were tried on."""
    shape, table, _ = read_initial_rows(frame, y, None)
    trials = CandidateModels(table, shape.target, weight, Folds(fold, np.ones(len(fold), dtype=bool)))
    found = {one.name: one for one in trials.run()}
    assert not trials.skipped
    return found, table, shape.target


@pytest.mark.slow
def test_held_out_scores_are_those_of_models_that_never_saw_the_row():
    frame, y = mixed_table()
    frame = frame.drop(columns="nobody")
    fold = random_folds((y == "yes").astype(np.intp), 4, 0)
    found, table, target = tried(frame, y, fold)
    assert len(found) == 12
    telling = RawColumns(("size", "count", "sky", "flag"), ("count",))  # one is constant, one a copy; the sky's gaps
    views = {
        "naive Bayes, suggested": RawColumns(tuple(frame)),
        "tree": telling,
        "one-dependence": telling,
    }  # say nothing
    families = select_families_by_fold(table, tuple(frame), target, None, fold).by_fold
    for name, one in found.items():
        if name in TREES:  # a row is held out from the trees that were not grown from it
            np.testing.assert_array_equal(np.isfinite(one.scores), True)
            continue
        assert one.view == views.get(name, one.view)
        make = clone(one.model)
        if "discriminant" in name:  # default priors are those of all rows
            make = make.set_params(prior=clone(make).fit(one.view.apply(table, target), target).prior_)
        for k in range(4):
            test = fold == k
            if "naive" in name:  # what looks at the classes is chosen without the fold
                make = make.set_params(columns=families[k])
            model = make.fit(one.view.apply(table.rows(np.flatnonzero(~test)), target), target)
            scores = model.predict_log_proba(one.view.apply(table.rows(np.flatnonzero(test))))
            np.testing.assert_allclose(one.scores[test], scores, rtol=1e-7, atol=1e-7)


def test_bins_by_class_are_cut_without_the_fold():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 1200)
    frame = pd.DataFrame({"a": rng.normal(y, 1.0), "b": rng.normal(0, 1 + y), "c": rng.choice(["u", "v"], 1200)})
    frame.loc[::7, "b"] = np.nan
    fold = random_folds(y, 5, 0)
    found, table, target = tried(frame, y, fold)
    for name, make in [("one-dependence", tb.AveragedOneDependence), ("tree", tb.TreeAugmentedNaiveBayes)]:
        one = found[f"{name}, bins by class"]
        assert one.model.columns == make(bins="mdl").fit(one.view.apply(table, target), target).columns_
        for k in range(5):
            model = make(bins="mdl").fit(one.view.apply(table.rows(np.flatnonzero(fold != k)), target), target)
            scores = model.predict_log_proba(one.view.apply(table.rows(np.flatnonzero(fold == k))))
            np.testing.assert_allclose(one.scores[fold == k], scores, rtol=1e-7, atol=1e-7)


def test_a_weight_is_as_many_rows():
    frame, y = mixed_table(90)
    weight = np.random.default_rng(1).integers(1, 4, 90)
    fold = random_folds((y == "yes").astype(np.intp), 3, 0)
    twice = np.repeat(np.arange(90), weight)
    by_weight, _, _ = tried(frame, y, fold, weight.astype(float))
    by_rows, _, _ = tried(frame.iloc[twice].reset_index(drop=True), y[twice], fold[twice])
    for name in by_weight.keys() & by_rows.keys():
        # A middle that stands for missing cells is that of the rows; equal rows are held out by turns from trees.
        if "discriminant" not in name and name not in TREES:
            np.testing.assert_allclose(by_weight[name].scores[twice], by_rows[name].scores, rtol=1e-6, atol=1e-6)


def test_views():
    frame, y = mixed_table(12)
    _, table, _ = read_initial_rows(frame, y, None)
    seen = RawColumns(("size", "sky"), ("count",)).apply(table, "class")
    assert list(seen.columns) == ["class", "size", "sky", "count is missing"]
    np.testing.assert_array_equal(seen.columns["count is missing"], frame["count"].isna())
    view = NumericBlock((("size", 0.5), ("count", 2.0)), ("count",), (("sky", ("sun", "rain", "snow")),))
    (block,) = view.apply(table).columns.values()
    wanted = np.stack(
        [
            frame["size"],
            frame["count"].fillna(2.0),
            frame["count"].isna(),
            frame["sky"] == "sun",
            frame["sky"] == "rain",
            np.zeros(12),
        ],
        axis=1,
    ).astype(float)
    np.testing.assert_array_equal(block, wanted)
    assert list(view.column_names().values())[-2:] == ["sky = rain", "sky = snow"]


def test_a_table_as_people_have_it():
    frame, y = mixed_table()
    model = tb.AutoClassifier().fit(frame, y)
    assert model.score(frame, y) > 0.8
    assert model.leaderboard_.dropped_columns.keys() >= {"same", "again"}
    assert list(model.feature_names_in_) == list(frame)
    text = repr(model.leaderboard_)
    assert "candidate" in text
    assert "log loss" in text
    assert "reason" in text
    assert "'" not in text.splitlines()[0]
    assert len(model.leaderboard_.to_frame()) == len(model.leaderboard_.tried)
    by_name = tb.AutoClassifier().fit(frame.assign(answer=y), "answer")
    np.testing.assert_array_equal(by_name.predict_proba(frame), model.predict_proba(frame))
    lost = frame.copy()
    lost.loc[:, "size"] = np.nan
    assert np.isfinite(model.predict_log_proba(lost)).all()
    strange = frame.assign(sky="snow")
    assert np.isfinite(model.predict_log_proba(strange)).all()


@pytest.mark.slow
def test_it_adds_and_forgets_member_by_member():
    frame, y = mixed_table()
    whole = tb.AutoClassifier().fit(frame, y)
    parts = [tb.AutoClassifier(spec=whole.spec_).fit(frame[part], y[part]) for part in (slice(90), slice(90, None))]
    both = parts[0] + parts[1]
    np.testing.assert_allclose(both.predict_proba(frame), whole.predict_proba(frame), rtol=1e-10)
    assert sum(parts).spec_ == whole.spec_
    grown = copy.deepcopy(parts[0]).partial_fit(frame[90:], y[90:])
    np.testing.assert_allclose(grown.predict_proba(frame), whole.predict_proba(frame), rtol=1e-10)
    grown.forget(frame[90:], y[90:])
    np.testing.assert_allclose(grown.predict_proba(frame), parts[0].predict_proba(frame), rtol=1e-8)
    with pytest.raises(tb.StatisticsError):
        parts[0].forget(frame[90:], np.where(y[90:] == "no", "yes", "no"))
    fresh = tb.AutoClassifier(spec=whole.spec_).fit(frame[:90], y[:90])
    np.testing.assert_array_equal(parts[0].predict_proba(frame), fresh.predict_proba(frame))  # nothing changed
    other = tb.AutoClassifier().fit(frame[90:], y[90:])
    with pytest.raises(tb.StatisticsError, match=r"specs of the models differ(.|\n)*spec=other.spec_"):
        whole + other


def test_weights_are_repetitions():
    frame, y = mixed_table(100)
    weight = np.where(np.arange(100) % 4 == 0, 0.0, 1.0)
    kept = weight > 0
    found = tb.AutoClassifier().fit(frame, y, sample_weight=weight)
    wanted = tb.AutoClassifier().fit(frame[kept], y[kept])
    assert found.spec_ == wanted.spec_
    np.testing.assert_allclose(found.predict_proba(frame), wanted.predict_proba(frame), rtol=1e-9)


@pytest.mark.slow
def test_the_same_bits_every_time(wine, tmp_path):
    X, y, model = wine
    answer = model.predict_proba(X)
    model.save(tmp_path / "chosen.tally")
    for other in (
        clone(model).fit(X, y),
        pickle.loads(pickle.dumps(model)),
        tb.load(tmp_path / "chosen.tally"),
        tb.AutoClassifier(spec=model.spec_).fit(X, y),
    ):
        np.testing.assert_array_equal(other.predict_proba(X), answer)
        assert other.spec_ == model.spec_
    loaded = tb.load(tmp_path / "chosen.tally")
    np.testing.assert_allclose(
        loaded.forget(X[:50], y[:50]).predict_proba(X), copy.deepcopy(model).forget(X[:50], y[:50]).predict_proba(X)
    )
    assert clone(model).get_params() == model.get_params()
    scores = cross_val_score(tb.AutoClassifier(single=True, folds=3), X, y, cv=2, n_jobs=2)
    np.testing.assert_array_equal(scores, cross_val_score(tb.AutoClassifier(single=True, folds=3), X, y, cv=2))


def test_a_member_to_which_absence_tells_is_saved_and_loaded(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    frame = pd.DataFrame(
        {"sky": np.where(rng.random(60) < 0.3 + 0.4 * y, "sun", "rain"), "deck": rng.choice([*"ABC"], 60)}
    )
    frame.loc[rng.random(60) < 0.1 + 0.8 * y, "deck"] = None
    model = tb.AutoClassifier().fit(frame, y)
    families = [family for _, one in model.members_ for family in getattr(one, "columns_", {}).values()]
    assert any(isinstance(family, tb.WithMissing) for family in families)
    model.save(tmp_path / "chosen.tally")
    np.testing.assert_array_equal(tb.load(tmp_path / "chosen.tally").predict_proba(frame), model.predict_proba(frame))


def test_explanations_name_the_columns_of_the_table():
    frame, y = mixed_table()
    model = tb.AutoClassifier().fit(frame, y)
    found = model.explain(frame[:5])
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.log_odds, atol=1e-9)
    assert found.columns[:2] == ["(class prior)", "size"]
    assert set(found.columns) <= {"(class prior)", "size", "count", "sky", "flag", "(together)", "(calibration)"}


def test_a_class_that_comes_later():
    X, y = load_iris(return_X_y=True)
    model = tb.AutoClassifier().fit(X[y < 2], y[y < 2])
    with pytest.warns(tb.CalibrationWarning, match="class 2 is new"):
        model.add_class(2, X[y == 2])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X, y) > 0.9


def test_it_says_what_it_would_get():
    """Loss on rows it has not seen at all, beside the one it reports: means over splits, as test sets are small."""
    gaps = []
    for load, seed in product((load_iris, load_wine, load_breast_cancer), range(4)):
        X, y = load(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
        model = tb.AutoClassifier().fit(X[train], y[train])
        p = model.predict_proba(X[test])[np.arange(len(test)), y[test]]
        gaps.append(-np.log(p).mean() - model.leaderboard_.loss)
    assert abs(np.mean(gaps)) < 0.05


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_few_rows(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3)), np.arange(n) % 2
    if n == 1:
        with pytest.raises(tb.DataError, match="1 row"):
            tb.AutoClassifier().fit(X, y)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = tb.AutoClassifier().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_columns_that_no_row_shows():
    nothing = pd.DataFrame({"number": [np.nan] * 20, "label": [None] * 20})
    model = tb.AutoClassifier().fit(nothing, ["u", "v", "v", "v"] * 5)
    assert list(model.predict(nothing[:2])) == ["v", "v"]


def test_identifiers_take_no_part_in_any_member():
    X, y = mixed_table()
    order = np.argsort(y, kind="stable")  # sorted by class: a running number would tell it
    X, y = X.iloc[order], np.asarray(y)[order]
    named = X.assign(number=range(len(X)), name=[f"row {k}" for k in range(len(X))])
    model = tb.AutoClassifier().fit(named, y)
    assert {"number", "name"} <= set(model.leaderboard_.dropped_columns)
    np.testing.assert_array_equal(model.predict_proba(named), tb.AutoClassifier().fit(X, y).predict_proba(X))


def test_labels_of_many_levels_take_no_part_in_pairs_and_indicators(monkeypatch):
    X, y = mixed_table()
    X["place"] = [f"place {k % 50}" for k in range(len(X))]
    monkeypatch.setattr(candidate_models, "_MOST_PAIRS", 2 * 40**2)
    monkeypatch.setattr(candidate_models, "_MOST_WIDE", 40)
    model = tb.AutoClassifier().fit(X, y)
    assert list(model.leaderboard_.skipped) == ["pairs with place", "indicators of place"]
    reads = {member.spec.name: member.spec.view.read_names() for member in model.members_}
    assert [name for name, columns in reads.items() if "place" in columns] in ([], ["naive Bayes, suggested"])
    assert any("levels as numbers" in one.name for one in model.leaderboard_.tried)
    monkeypatch.setattr(candidate_models, "_MOST_PAIRS_AT_ALL", 100)
    assert tb.AutoClassifier().fit(X, y).leaderboard_.skipped["pairs"].startswith("5 columns have too many pairs")


def test_one_class_and_constant_columns():
    model = tb.AutoClassifier().fit(np.random.default_rng(0).normal(size=(20, 2)), ["only"] * 20)
    np.testing.assert_allclose(model.predict_proba(np.zeros((2, 2))), 1.0)
    model = tb.AutoClassifier().fit(np.ones((20, 2)), ["a", "b"] * 10)
    np.testing.assert_allclose(model.predict_proba([[1.0, 1.0]]), 0.5, atol=0.02)


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (np.zeros((0, 2)), [], "0 rows"),
        ([[1.0], [2.0]], [0, None], "label of row 1"),
        ([[1.0], [np.inf]], [0, 1], "inf"),
        ([[1.0], [2.0], [3.0]], [0.5, 1.5, 2.25], "Unknown label type"),
    ],
)
def test_wrong_rows(X, y, match):
    with pytest.raises(ValueError, match=match):
        tb.AutoClassifier().fit(np.array(X), y)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("method", ["predict", "partial_fit", "forget", "explain"])
def test_infinite_cells_are_refused_by_name_later(method):
    X, y = load_wine(return_X_y=True)
    X = pd.DataFrame(X, columns=[f"column {k}" for k in range(X.shape[1])])
    model = tb.AutoClassifier().fit(X, y)
    assert any(isinstance(member.spec.view, NumericBlock) for member in model.members_)
    wrong = X[:4].copy()
    wrong.iloc[2, 5] = -np.inf
    with pytest.raises(tb.DataError, match="found -inf in row 2, column 'column 5'"):
        getattr(model, method)(wrong, *([y[:4]] if method in ("partial_fit", "forget") else []))


def test_words_are_refused_by_name():
    from scipy import sparse

    with pytest.raises(tb.DataError, match="sparse block"):
        tb.AutoClassifier().fit({"words": sparse.csr_matrix(np.eye(4))}, [0, 1, 0, 1])
    with pytest.raises(tb.DataError, match="spec_"):
        tb.AutoClassifier(spec="best").fit([[1.0], [2.0]], [0, 1])


@pytest.mark.slow_after(1)
@parametrize_with_checks([tb.AutoClassifier(folds=2, single=True)])
def test_keeps_the_contract(estimator, check):
    if "check_sample_weight_equivalence" in str(check):
        pytest.skip("a row of weight 2 is in one fold, two rows that are equal may be in two")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# ---- The contract of the others -----------------------------------------------------------------------------------


def _fitted():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 240)
    rows = {"x": rng.normal((y == "a") * 2.0), "z": rng.normal((y == "b") * 1.5), "s": rng.choice(["u", "v"], 240)}
    return rows, y, tb.AutoClassifier(folds=3).fit(rows, y)


def test_other_shares_of_the_classes_shift_what_is_said():
    rows, _, model = _fitted()
    own = np.exp(model.members_[0].model.class_log_prior_)
    told = model.predict_proba(rows)
    new = {"a": 0.8, "b": 0.1, "c": 0.1}
    shifted = told * np.array(list(new.values())) / own
    expected = shifted / shifted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(rows, new), expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(rows, dict(zip("abc", own, strict=True))), told, rtol=1e-9)
    costs = 1 - np.eye(3)
    assert (model.decide(rows) == model.predict(rows)).all()
    assert (model.decide(rows, costs, class_prior=new) == np.array(list("abc"))[expected.argmax(axis=1)]).all()
    assert (model.predict_set(rows, 0.9).sum(axis=1) >= 1).all()


def test_a_class_is_dropped_with_all_its_rows():
    rows, y, model = _fitted()
    kept = y != "c"
    some = {name: column[kept] for name, column in rows.items()}
    before = pickle.loads(pickle.dumps(model))
    assert any(member.spec.kind == "boosting" for member in model.members_)
    with pytest.warns(CalibrationWarning, match="left the ensemble"):
        found = model.drop_class("c")
    assert found is model
    assert len(model.spec_.members) == len(model.members_) == len(before.members_) - 1
    assert sum(m.spec.weight for m in model.members_) == pytest.approx(sum(m.spec.weight for m in before.members_))
    assert model.classes_.tolist() == ["a", "b"]
    forgotten = before.forget({name: column[~kept] for name, column in rows.items()}, y[~kept])
    others = [member for member in forgotten.members_ if member.spec.kind != "boosting"]
    for mine, its in zip(model.members_, others, strict=True):
        np.testing.assert_array_equal(class_count(mine.model), class_count(its.model))
    assert np.allclose(model.predict_proba(some).sum(axis=1), 1)
    with pytest.raises(LabelError, match="'c'"):
        model.drop_class("c")


def test_it_tells_what_it_consists_of():
    _, _, model = _fitted()
    lines = repr(model).splitlines()
    assert len(lines) == 1 + len(model.members_)
    found = model.summary()
    assert found.title.startswith("AutoClassifier of 240 rows, classes a: ")
    assert [one.weight for one in found.members] == [choice.weight for choice, _ in model.members_]
    assert "columns as numbers" not in repr(found)
    assert set(found.to_frame()["member"]) == {choice.name for choice, _ in model.members_}
    assert repr(tb.AutoClassifier()) == "AutoClassifier()"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "changed",
    [
        {"temperature": 0.0},
        {"temperature": np.nan},
        {"contamination": 1.5},
        {"base_rates": (0.5, 0.5)},
        {"base_rates": (0.9, 0.9, -0.8)},
        {"classes": ("a", "a", "b")},
    ],
)
def test_what_mends_nothing_is_refused(changed):
    _, _, model = _fitted()
    with pytest.raises(DataError):
        model.spec_.members[0].calibration.replace(**changed)


def test_a_choice_that_is_none_is_refused():
    choice = _fitted()[2].spec_
    first = choice.members[0]
    for changed in ({"weight": np.nan}, {"weight": -1.0}, {"view": "names"}, {"model": "os"}, {"calibration": None}):
        with pytest.raises(DataError):
            first.replace(**changed)
    for members in ((), ("a",)):
        with pytest.raises(DataError):
            choice.replace(members=members)
    other = first.replace(calibration=first.calibration.replace(classes=("a", "b", "d")))
    with pytest.raises(DataError, match="different classes"):
        choice.replace(members=(*choice.members, other))


def patients(seed=0, n_groups=30, n_rows=6):
    """Rows of patients: a column that identifies the patient well, and one that depends on the class."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), n_rows)
    y = rng.permutation(n_groups)[group] % 2
    mark = rng.normal(size=(n_groups, 3))[group] + rng.normal(0, 0.05, (len(group), 3))
    return np.column_stack([mark, rng.normal(0.7 * y)]), np.where(y == 1, "ill", "well"), group


def test_rows_of_one_group_are_held_out_together():
    X, y, group = patients()
    alone = tb.AutoClassifier().fit(X, y).leaderboard_
    grouped = tb.AutoClassifier().fit(X, y, groups=group)
    assert grouped.leaderboard_.accuracy < alone.accuracy - 0.2  # patients are recognized, and not the illness
    new, answers, _ = patients(1)
    assert abs(tb.evaluate(grouped, new, answers).log_loss.value - grouped.leaderboard_.loss) < 0.1
    frame = pd.DataFrame(X, columns=list("abcd")).assign(patient=group, y=y)
    named = tb.AutoClassifier().fit(frame, "y", groups="patient")
    assert "patient" not in named._required_columns
    np.testing.assert_allclose(named.predict_proba(frame.drop(columns="patient")), grouped.predict_proba(X), atol=1e-12)


@pytest.mark.slow_after(0)
def test_ordered_rows_are_predicted_from_earlier_ones():
    rng = np.random.default_rng(0)
    time = rng.permutation(300)
    y = np.where(time < 150, time % 2, 1 - time % 2)  # the rule is inverted half-way
    X = np.column_stack([time % 2 + rng.normal(0, 0.3, 300), rng.normal(size=300)])
    shuffled = tb.AutoClassifier(folds=3).fit(X, y).leaderboard_
    ordered = tb.AutoClassifier(folds=3).fit(X, y, order=time).leaderboard_
    assert ordered.n_folds == 3
    assert ordered.loss > shuffled.loss
    with pytest.raises(DataError, match="groups and order are both given"):
        tb.AutoClassifier().fit(X, y, groups=y, order=time)


def test_a_time_budget_limits_the_candidates():
    X, y = load_iris(return_X_y=True)
    board = tb.AutoClassifier(time_budget=1e-9).fit(X, y).leaderboard_
    assert [entry.name for entry in board.tried] == ["naive Bayes, suggested"]
    assert board.skipped["forest"] == "the time budget was used up."
    with pytest.raises(DataError, match="time_budget"):
        tb.AutoClassifier(time_budget=-1).fit(X, y)
    with pytest.raises(DataError, match="folds"):
        tb.AutoClassifier(folds=1).fit(X, y)


def test_constant_columns_of_categories_predict_the_class_frequencies():
    y = np.arange(60) % 3 == 0
    model = tb.AutoClassifier().fit(np.array([["a", "b"]] * 60), y)
    np.testing.assert_allclose(model.predict_proba([["a", "b"]]), [[2 / 3, 1 / 3]], atol=0.02)
