"""One-dependence estimators: by enumeration, by a model written out row by row, and by the laws of counting."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine

import tallybayes as tb
from tallybayes.data.table import Table

KINDS = [tb.AveragedOneDependence, tb.TreeAugmentedNaiveBayes]
each = pytest.mark.parametrize("kind", KINDS)


def rows(seed=0, n=60, sizes=(2, 3, 2, 4), n_classes=3, missing=0.15):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    first = rng.integers(0, sizes[0], n)
    columns = [first] + [(first + y * (j + 1) + rng.integers(0, 2, n)) % size for j, size in enumerate(sizes[1:])]
    frame = {f"c{j}": [None if rng.random() < missing else f"l{v}" for v in c] for j, c in enumerate(columns)}
    return frame, np.array(["a", "b", "c"])[y]


class WrittenOut:
    """p(class, row) from the rows themselves, cell by cell: no tables, no kernels, no tricks."""

    def __init__(self, frame, y, weight, strength, alpha, parents=None):
        self.names, self.weight, self.m, self.parents = list(frame), weight, strength, parents
        self.rows, self.y = [dict(zip(frame, cells, strict=True)) for cells in zip(*frame.values(), strict=True)], y
        self.classes = sorted(set(y))
        self.levels = {name: list(dict.fromkeys(v for v in frame[name] if v is not None)) for name in frame}
        self.alpha = alpha

    def total(self, label, **cells):
        fits = (
            w
            for row, y, w in zip(self.rows, self.y, self.weight, strict=True)
            if y == label and all(row[k] is not None if v is ... else row[k] == v for k, v in cells.items())
        )
        return sum(fits)

    def share(self, label, name, level):
        return (self.total(label, **{name: level}) + self.alpha) / (
            self.total(label, **{name: ...}) + self.alpha * len(self.levels[name])
        )

    def given(self, label, name, level, parent, parent_level):
        pair = self.total(label, **{name: level, parent: parent_level})
        both = self.total(label, **{name: ..., parent: parent_level})
        return (pair + self.m * self.share(label, name, level)) / (both + self.m)

    def class_share(self, label):
        return (self.total(label) + 1) / (sum(self.weight) + len(self.classes))

    def whole(self, label, row):
        """p(class, row) of a row in which nothing is missing."""
        p = self.class_share(label)
        if self.parents is not None:
            for name, parent in self.parents.items():
                p *= self.share(label, name, row[name]) if parent is None else 1.0
                p *= 1.0 if parent is None else self.given(label, name, row[name], parent, row[parent])
            return p
        out = 0.0
        for parent in self.names:
            term = p * self.share(label, parent, row[parent])
            for name in self.names:
                term *= 1.0 if name == parent else self.given(label, name, row[name], parent, row[parent])
            out += term / len(self.names)
        return out

    def joint(self, label, row):
        """p(class, what is known of a row): the sum over all that may be missing."""
        choices = [[row[name]] if row[name] is not None else self.levels[name] for name in self.names]
        return sum(
            self.whole(label, dict(zip(self.names, cells, strict=True))) for cells in itertools.product(*choices)
        )


@pytest.mark.slow_after(1)
@each
@pytest.mark.parametrize("weighted", [False, True])
def test_every_row_by_enumeration(kind, weighted):
    frame, y = rows()
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y)) if weighted else np.ones(len(y))
    model = kind(strength=2.5, prior=tb.Dirichlet(0.7), class_prior=tb.Dirichlet(1.0)).fit(frame, y, weight)
    parents = model.parents_ if kind is tb.TreeAugmentedNaiveBayes else None
    truth = WrittenOut(frame, y, weight, 2.5, 0.7, parents)
    some, _ = rows(seed=9, n=12, missing=0.4)
    found = np.exp(model.predict_joint_log_proba(some))
    for i, cells in enumerate(zip(*some.values(), strict=True)):
        row = dict(zip(some, cells, strict=True))
        wanted = [truth.joint(label, row) for label in truth.classes]
        np.testing.assert_allclose(found[i], wanted, rtol=1e-11)
        np.testing.assert_allclose(
            np.exp(model.score_samples({k: [v] for k, v in row.items()})), sum(wanted), rtol=1e-11
        )


@each
def test_the_probabilities_of_all_rows_sum_to_1(kind):
    frame, y = rows(sizes=(2, 3, 2), missing=0.0)
    model = kind().fit(frame, y)
    levels = [list(dict.fromkeys(column)) for column in frame.values()]
    every = dict(zip(frame, zip(*itertools.product(*levels), strict=True), strict=True))
    assert np.exp(model.score_samples({k: list(v) for k, v in every.items()})).sum() == pytest.approx(1.0, abs=1e-12)


def test_the_tree_is_the_best_of_all():
    from scipy.special import xlogy

    frame, y = rows(n=200)
    model = tb.TreeAugmentedNaiveBayes().fit(frame, y)
    table = pd.DataFrame(frame).assign(y=y)

    def information(a, b):
        known = table[[a, b, "y"]].dropna()
        cube = known.groupby([a, b, "y"]).size() / len(known)
        out = sum(xlogy(p, p) for p in cube)
        for drop in ((a,), (b,), (a, b)):
            rest = [c for c in (a, b, "y") if c not in drop]
            sign = 1 if len(drop) == 2 else -1
            out += sign * sum(xlogy(p, p) for p in known.groupby(rest).size() / len(known))
        return out

    names = list(frame)
    weights = {frozenset(pair): information(*pair) for pair in itertools.combinations(names, 2)}
    ours = sum(weights[frozenset((a, b))] for a, b in model.parents_.items() if b is not None)
    trees = [
        edges
        for edges in itertools.combinations(weights, len(names) - 1)
        if len(frozenset().union(*edges)) == len(names) and _is_connected(edges)
    ]
    assert ours == pytest.approx(max(sum(weights[e] for e in edges) for edges in trees))


def _is_connected(edges):
    seen = set(edges[0])
    for _ in edges:
        for edge in edges:
            if seen & edge:
                seen |= edge
    return len(seen) == len(frozenset().union(*edges))


@pytest.mark.slow_after(1)
@each
@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_left_out_is_a_row_never_seen(kind, weighted):
    frame, y = rows(n=40)
    weight = np.random.default_rng(2).integers(1, 4, len(y)).astype(float) if weighted else None
    options = {"strength": 3.0, "prior": tb.Dirichlet(0.5)}
    found = tb.leave_one_out(kind(**options), frame, y, sample_weight=weight)
    whole = kind(**options).fit(frame, y, weight)
    compared = 0
    for i in range(len(y)):
        rest = {name: [*column[:i], *column[i + 1 :]] for name, column in frame.items()}
        model = kind(**options).fit(rest, np.delete(y, i), None if weight is None else np.delete(weight, i))
        same = kind is not tb.TreeAugmentedNaiveBayes or model.parents_ == whole.parents_
        if not same or any(len(model.tally_.domains[n].levels) < len(whole.tally_.domains[n].levels) for n in frame):
            continue  # the tree and the levels are those of all rows
        compared += 1
        row = {name: [column[i]] for name, column in frame.items()}
        np.testing.assert_allclose(found.log_proba[i], model.predict_log_proba(row)[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.log_density[i], model.score_samples(row)[0], rtol=1e-9)
    assert compared > 20


@each
@given(seed=st.integers(0, 50), cut=st.integers(1, 29), missing=st.sampled_from([0.0, 0.3, 1.0]))
def test_counting_laws(kind, seed, cut, missing):
    frame, y = rows(seed=seed, n=30, missing=missing)
    first, last = ({k: v[part] for k, v in frame.items()} for part in (slice(cut), slice(cut, None)))
    whole = kind().fit(frame, y)
    test, _ = rows(seed=seed + 1, n=8)
    answer = whole.predict_log_proba(test)
    parts = kind().fit(first, y[:cut]) + kind().fit(last, y[cut:])
    np.testing.assert_array_equal(parts.predict_log_proba(test), answer)
    grown = kind().fit(first, y[:cut]).partial_fit(last, y[cut:])
    np.testing.assert_array_equal(grown.predict_log_proba(test), answer)
    alone = kind().fit(first, y[:cut])
    np.testing.assert_array_equal(grown.forget(last, y[cut:]).predict_log_proba(test), alone.predict_log_proba(test))
    other = kind().fit(last, y[cut:]).partial_fit(first, y[:cut])  # meets the levels in another order
    assert other.tally_ == whole.tally_
    np.testing.assert_allclose(other.predict_log_proba(test), answer, rtol=1e-12, atol=1e-12)
    twice = kind().fit({k: [*v, *v[:5]] for k, v in frame.items()}, [*y, *y[:5]])
    weight = np.where(np.arange(30) < 5, 2.0, 1.0)
    np.testing.assert_array_equal(kind().fit(frame, y, weight).predict_log_proba(test), twice.predict_log_proba(test))


@each
@pytest.mark.parametrize("bins", [3, "mdl"])
def test_bins_are_chosen_by_the_rows_that_count_and_then_fixed(kind, bins):
    X, y = load_wine(return_X_y=True)
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    kept = weight > 0
    model = kind(bins=bins).fit(X, y, weight)
    assert model.columns_ == kind(bins=bins).fit(X[kept], y[kept]).columns_
    order = np.random.default_rng(0).permutation(len(y))
    assert kind(bins=bins).fit(X[order], y[order], weight[order]).columns_ == model.columns_
    before = model.columns_
    model.partial_fit(X[~kept] * 5, y[~kept])
    assert model.columns_ == before
    fixed = kind(before).fit(X[kept], y[kept])
    np.testing.assert_array_equal(model.forget(X[~kept] * 5, y[~kept]).predict_log_proba(X), fixed.predict_log_proba(X))
    assert clone(model).bins == bins
    other = kind(bins=bins).fit(X[:90] * 2, y[:90])
    with pytest.raises(tb.StatisticsError, match=r"column 0 has different bins.*\n.*columns=other.columns_"):
        model + other
    with pytest.raises(tb.DataError, match="Refit"):
        model.reestimate(bins=4)


@each
def test_files_pickles_and_tallies(kind, tmp_path):
    X, y = load_wine(return_X_y=True)
    X[::7, 3] = np.nan
    model = kind(bins=4).fit(X, y)
    answer = model.predict_log_proba(X)
    model.save(tmp_path / "model.tally")
    for other in (tb.load(tmp_path / "model.tally"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_log_proba(X), answer)
        assert other.columns_ == model.columns_
        np.testing.assert_array_equal(other.partial_fit(X[:9], y[:9]).forget(X[:9], y[:9]).predict_log_proba(X), answer)
    again = kind(model.columns_, bins=4).fit_tally(model.tally_)
    np.testing.assert_array_equal(again.predict_log_proba(X), answer)
    with pytest.raises(tb.StatisticsError, match="not one of pairs"):
        kind().fit_tally(tb.NaiveBayes().fit(X, y).tally_)


@each
def test_explanations_sum_to_the_log_odds(kind):
    X, y = load_wine(return_X_y=True)
    X[::4, 2] = np.nan
    model = kind().fit(X, y)
    found = model.explain(X[:40])
    joint = model.predict_joint_log_proba(X[:40])
    best = np.sort(joint, axis=1)
    np.testing.assert_allclose(found.log_odds, best[:, -1] - best[:, -2], atol=1e-10)
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.log_odds, atol=1e-10)
    names = found.columns
    assert names[0] == "(class prior)"
    assert names[-1] == "(together)"
    without = X[:40].copy()
    without[:, 5] = np.nan
    joint = model.predict_joint_log_proba(without)
    order = [np.searchsorted(model.classes_, part) for part in (found.classes, found.against)]
    each_row = np.arange(40)
    rest = joint[each_row, order[0]] - joint[each_row, order[1]]
    np.testing.assert_allclose(found.contributions[:, names.index(5)], found.log_odds - rest, atol=1e-10)
    assert (found.contributions[::4, names.index(2)] == 0).all()  # missing
    assert "(together)" in repr(found)
    assert len(found.to_frame()) == 40 * 15
    assert model.explain(X[:3], against=2).against.tolist() == [2, 2, 2]


@each
def test_samples_have_the_probabilities_they_claim(kind):
    frame, y = rows(sizes=(2, 3), missing=0.0)
    model = kind().fit(frame, y)
    drawn, labels = model.sample(40_000, random_state=0)
    levels = [sorted(set(column)) for column in frame.values()]
    for cells in itertools.product(*levels):
        joint = np.exp(model.predict_joint_log_proba({k: [v] for k, v in zip(frame, cells, strict=True)}))[0]
        hit = np.logical_and.reduce([np.asarray(drawn[k]) == v for k, v in zip(frame, cells, strict=True)])
        for label, p in zip(model.classes_, joint, strict=True):
            assert abs((hit & (labels == label)).mean() - p) < 4 * np.sqrt(p / 40_000) + 1e-4
    assert set(model.sample(5, given="b", random_state=1)[1]) == {"b"}


@each
def test_numbers_are_drawn_from_their_bins(kind):
    X, y = load_wine(return_X_y=True)
    X[:, 4] = 7.0
    model = kind().fit(X, y)
    drawn, _ = model.sample(500, random_state=0)
    assert drawn.shape == (500, 13)
    assert np.isnan(drawn[:, 4]).all()
    assert model.dropped_columns_ == {4: "constant"}
    assert 4 not in model.columns_
    spread = np.delete(drawn.std(axis=0) / X.std(axis=0), 4, axis=0)
    assert (spread > 0.6).all()
    assert (spread < 2.5).all()
    assert model.score(drawn, model.predict(drawn)) == 1.0


@each
def test_missing_cells_are_filled_by_what_the_row_says(kind):
    frame, y = rows(n=120)
    model = kind().fit(frame, y)
    found = model.impute(frame, "distribution")
    row = found["c2"].rows[0]
    known = {name: [column[row]] for name, column in frame.items()}
    shares = [np.exp(model.score_samples({**known, "c2": [level]}))[0] for level in found["c2"].levels]
    np.testing.assert_allclose(found["c2"].probabilities[0], np.array(shares) / sum(shares), rtol=1e-9)
    filled = model.impute(frame)
    assert all(cell is not None for column in filled.values() for cell in column)
    X, y = load_wine(return_X_y=True)
    lost = X.copy()
    lost[::3, 6] = np.nan
    again = kind().fit(X, y).impute(lost)
    assert np.abs(again[::3, 6] - X[::3, 6]).mean() < np.abs(np.median(X[:, 6]) - X[::3, 6]).mean()
    np.testing.assert_array_equal(np.delete(again, 6, axis=1), np.delete(X, 6, axis=1))


@each
def test_no_column_says_anything(kind):
    model = kind().fit(np.ones((6, 2)), [0, 0, 0, 0, 1, 1])
    assert set(model.dropped_columns_) == {0, 1}
    np.testing.assert_allclose(model.predict_proba([[5.0, 1.0], [np.nan, 2.0]]), np.exp([model.class_log_prior_] * 2))
    assert model.explain([[5.0, 1.0]]).to_dict().keys() == {"(class prior)", "(together)"}


@each
def test_a_column_nobody_knows(kind):
    frame = {"a": ["x", "y", "x", "y"], "b": [None] * 4, "c": [np.nan] * 4}
    model = kind().fit(frame, [0, 1, 0, 1])
    assert model.predict({"a": ["x"], "b": ["new"], "c": [3.0]}) == [0]
    model.partial_fit({"a": ["x"], "b": ["u"], "c": [1.0]}, [0])
    assert model.predict({"a": ["y"], "b": ["u"], "c": [3.0]}).shape == (1,)


@each
def test_unseen_levels(kind):
    frame, y = rows()
    model = kind().fit(frame, y)
    row = {name: [column[0]] for name, column in frame.items()}
    np.testing.assert_array_equal(
        model.predict_log_proba({**row, "c1": ["never"]}), model.predict_log_proba({**row, "c1": [None]})
    )
    with pytest.raises(tb.LabelError, match="never"):
        kind(unseen="error").fit(frame, y).predict({**row, "c1": ["never"]})
    for wrong in ("smooth", "skip"):
        with pytest.raises(tb.EstimateError, match="unseen is"):
            kind(unseen=wrong).fit(frame, y)


@each
def test_whole_numbers_booleans_and_frames(kind):
    digits = load_digits()
    X = digits.data.astype(int)
    model = kind(bins=4).fit(X[:900], digits.target[:900])
    assert model.score(X[900:], digits.target[900:]) > 0.88
    frame = pd.DataFrame({"a": [True, False, True, False] * 5, "b": pd.Categorical(list("xyzx") * 5), "c": range(20)})
    model = kind().fit(frame, ["u", "v"] * 10)
    assert model.score(frame, ["u", "v"] * 10) == 1.0
    assert list(model.feature_names_in_) == ["a", "b", "c"]


@each
def test_rows_without_labels(kind):
    frame, y = rows()
    y = y.astype(object)
    known = np.arange(len(y)) % 4 > 0
    y[~known] = None
    with pytest.raises(tb.LabelError, match="label of row 0 is missing"):
        kind().fit(frame, y)
    model = kind(unlabeled="skip").fit(frame, y)
    some = {name: [c for c, k in zip(column, known, strict=True) if k] for name, column in frame.items()}
    wanted = kind().fit(some, y[known])  # which may meet the levels in another order
    np.testing.assert_allclose(model.predict_log_proba(frame), wanted.predict_log_proba(frame), rtol=1e-12, atol=1e-12)
    with pytest.raises(tb.EstimateError, match=r"unlabeled is 'em'; expected 'skip' or None\.\n.*tb.NaiveBayes"):
        kind(unlabeled="em").fit(frame, y)


@each
def test_what_there_is_none_of(kind):
    frame, y = rows()
    model = kind().fit(frame, y)
    with pytest.raises(tb.EstimateError, match="no log_evidence"):
        model.log_evidence()
    with pytest.raises(tb.NotLinearError):
        model.to_linear()
    with pytest.raises(tb.EstimateError, match="no predict_proba_interval"):
        model.predict_proba_interval(frame)
    assert not hasattr(model, "bic_")


@each
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"bins": 1}, "bins is 1"),
        ({"bins": "many"}, "bins is 'many'"),
        ({"strength": 0.0}, "strength is 0.0"),
        ({"strength": "auto"}, "strength is 'auto'"),
        ({"columns": {0: tb.Gaussian()}}, r"family of column 0 .* Gaussian\(\)"),
    ],
)
def test_wrong_parameters(kind, options, match):
    with pytest.raises(tb.DataError, match=match):
        kind(**options).fit([[1.0, 2.0], [3.0, 4.0]], [0, 1])


@pytest.mark.slow
@each
def test_infinite_cells_and_huge_tables(kind, monkeypatch):
    X, y = load_wine(return_X_y=True)
    model = kind().fit(X, y)
    X[3, 1] = np.inf
    for act in (lambda: kind().fit(X, y), lambda: model.predict(X), lambda: model.partial_fit(X, y)):
        with pytest.raises(tb.DataError, match="found inf in row 3, column 1"):
            act()
    many = np.random.default_rng(0).normal(size=(30, 2000))
    monkeypatch.setattr("tallybayes._utils.memory.available_memory", lambda: 1_000_000_000)
    with pytest.raises(tb.TooLargeError, match="pairs of 16000 levels in 2000 columns and 2 classes"):
        kind().fit(many, np.arange(30) % 2)


@each
def test_folds_choose_the_tree_again_and_hold_the_bins(kind):
    X, y = load_wine(return_X_y=True)
    found = tb.cross_validate(kind(bins=4), X, y, folds=3)
    columns = kind(bins=4).fit(X, y).columns_
    whole = kind(columns).fit(X, y)
    for fold in range(3):
        test = found.fold == fold
        model = kind(columns, prior=whole.prior_).fit(X[~test], y[~test])
        np.testing.assert_allclose(found.log_proba[test], model.predict_log_proba(X[test]), rtol=1e-9, atol=1e-9)


@each
def test_calibration_and_evaluation(kind):
    X, y = load_wine(return_X_y=True)
    model = kind().fit(X[::2], y[::2])
    before = -np.log(model.predict_proba(X[1::2])[np.arange(89), y[1::2]]).mean()
    model.calibrate(X[::2], y[::2])
    after = -np.log(model.predict_proba(X[1::2])[np.arange(89), y[1::2]]).mean()
    assert after < before + 0.02
    assert "accuracy" in repr(tb.evaluate(model, X[1::2], y[1::2]))


@each
def test_identifiers_take_no_part_unless_they_are_named(kind):
    frame, y = rows()
    named = frame | {"name": [f"row {k}" for k in range(60)]}
    model = kind().fit(named, y)
    assert model.dropped_columns_ == {"name": "an identifier: nearly every label is another"}
    np.testing.assert_array_equal(model.predict_proba(named), kind().fit(frame, y).predict_proba(frame))
    kept = kind({"name": tb.Categorical(), ...: "auto"}).fit(named, y)
    assert kept.dropped_columns_ == {}
    assert "name" in kept.columns_


@each
@pytest.mark.parametrize("key", ["size", 1, ("size",)])
def test_a_family_without_levels_is_refused_beside_others_that_are_left_open(kind, key):
    X, y = pd.DataFrame({"age": np.arange(30) % 7.0, "size": np.arange(30.0)}), np.arange(30) % 2
    with pytest.raises(tb.DataError, match="one with levels"):
        kind({key: tb.Gaussian(), ...: "auto"}).fit(X, y)
    assert set(kind({key: "auto"}).fit(X, y).columns_) == {"size"}


@pytest.mark.slow
@each
def test_many_columns_are_cut_at_once(kind):
    X = np.random.default_rng(0).normal(size=(20, 300))
    model = kind(bins=2).fit(X, np.arange(20) % 2)
    tables = []
    make = Table.__init__

    def counted(self, *arguments, **more):
        tables.append(self)
        make(self, *arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "__init__", counted)
        model.predict(X)
    assert len(tables) < 20  # one for every column took time that grew with their square


# ---- What is shown ------------------------------------------------------------------------------------------------


def _shown(kind):
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], 300)
    rows = {"x": rng.normal((y == "a") * 2.0), "s": rng.choice(["u", "v"], 300), "same": np.ones(300)}
    return rows, y, kind().fit(rows, y)


@pytest.mark.parametrize("kind", [tb.AveragedOneDependence, tb.TreeAugmentedNaiveBayes])
def test_what_it_consists_of_is_told_by_bins(kind):
    _, _, model = _shown(kind)
    found = model.summary()
    assert [(one.column, one.family, one.levels) for one in found.columns] == [
        ("x", "Binned of 8", 8),
        ("s", "Categorical()", 2),
    ]
    assert found.dropped_columns == {"same": "constant"}
    assert repr(model).splitlines()[1:] == [
        "    Binned of 8: x",
        "    Categorical(): s",
        "    left out, constant: same",
    ]
    assert repr(kind()) == f"{kind.__name__}()"


@pytest.mark.parametrize("kind", [tb.AveragedOneDependence, tb.TreeAugmentedNaiveBayes])
def test_pictures_and_checks_know_the_bins(kind):
    pytest.importorskip("matplotlib").use("agg")
    rows, y, model = _shown(kind)
    figure = model.plot_columns()
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == list(model.columns_["x"].bins)
    checked = tb.predictive_check(model, rows, y, n_draws=20)
    assert checked.replicates("x", 2)[3] == model.columns_["x"].bins
    assert not [one for one in checked.failed_checks if one.column == "x"]
    path = tb.prior_path(kind(), rows, y, [0.1, 1.0])
    assert "evidence" not in repr(path)
    assert list(path.to_frame()) == ["strength", "log_loss", "accuracy"]
    assert len(path.plot().axes) == 2


@pytest.mark.parametrize("prior", [0.5, tb.Dirichlet(1.0), "empirical", None])
def test_no_column_may_be_worth_its_cuts_whatever_the_prior(prior):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = tb.AveragedOneDependence(bins="mdl", prior=prior).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[:3]), 0.5)
