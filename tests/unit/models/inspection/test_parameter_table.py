"""What was learnt can be read back: labeled, under every estimate, by every model."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import tallybayes as tb
from tallybayes.errors import DataError
from tallybayes.models.ensemble.ensemble_spec import TREES

ESTIMATES = ["mle", "unbiased", "map", "bayes"]
RNG = np.random.default_rng(0)
N = 60
ROWS = {
    "sky": np.array(["sun", "rain", "fog"])[RNG.integers(0, 3, N)],
    "wet": RNG.integers(0, 2, N).astype(bool),
    "calls": RNG.poisson(3, N),
    "warmth": RNG.normal(20, 5, N),
    "price": np.exp(RNG.normal(0, 1, N)),
    "age": RNG.uniform(0, 90, N),
    "smokes": RNG.integers(0, 2, N),
    "salary": np.where(RNG.random(N) < 0.3, np.nan, RNG.normal(30, 4, N)),
    "kind": np.array(["a", "b"])[np.arange(N) % 2],
}
COLUMNS = {
    "sky": tb.Categorical(),
    "wet": tb.Categorical(),
    "calls": tb.Poisson(),
    "warmth": tb.Gaussian(),
    "price": tb.LogNormal(),
    "age": tb.Binned((0, 30, 60, None)),
    "smokes": tb.Bernoulli(),
    "salary": tb.WithMissing(tb.Gaussian()),
}


def of(kind, name):
    """The cells of a column in one class."""
    column = ROWS[name][ROWS["kind"] == kind]
    return column[~pd.isna(column)]


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_every_family_is_told_in_its_own_words(estimate):
    model = tb.NaiveBayes(COLUMNS, estimate=estimate).fit(ROWS, "kind")
    found = model.parameters_
    assert next(iter(found)) == "kind"
    assert set(found) == {*COLUMNS, "kind", "salary (present)"}
    assert found["sky"].columns == tuple(dict.fromkeys(ROWS["sky"].tolist()))
    assert found["wet"].columns == (False, True)
    assert found["age"].columns == ("[0, 30)", "[30, 60)", "60 and more")
    assert found["smokes"].columns == found["salary (present)"].columns == (0, 1)
    assert found["calls"].columns == ("rate",)
    assert found["warmth"].columns == found["salary"].columns == ("mean", "variance", "std")
    assert found["price"].columns == ("mean of log", "variance of log", "std of log")
    for name in ("sky", "wet", "age", "smokes", "salary (present)"):
        np.testing.assert_allclose(found[name].values.sum(axis=-1), 1, rtol=1e-12)
    for name in ("warmth", "salary"):
        np.testing.assert_allclose(found[name].values[:, 2], np.sqrt(found[name].values[:, 1]))
    assert ("posterior means" in repr(found)) == (estimate == "bayes")
    assert model.parameter_table("sky") is found["sky"]
    assert all(name in found.to_frame()["column"].tolist() for name in found)


def test_most_likely_parameters_are_those_of_the_cells():
    model = tb.NaiveBayes(COLUMNS, estimate="mle").fit(ROWS, "kind")
    for kind in ("a", "b"):
        assert model.parameter_table("sky")[kind, "fog"] == pytest.approx((of(kind, "sky") == "fog").mean())
        assert model.parameter_table("wet")[kind, True] == pytest.approx(of(kind, "wet").mean())
        assert model.parameter_table("calls")[kind, "rate"] == pytest.approx(of(kind, "calls").mean())
        assert model.parameter_table("smokes")[kind][1] == pytest.approx(of(kind, "smokes").mean())
        assert model.parameter_table("warmth")[kind] == pytest.approx(
            {
                "mean": of(kind, "warmth").mean(),
                "variance": of(kind, "warmth").var(),
                "std": of(kind, "warmth").std(),
            }
        )
        assert model.parameter_table("salary")[kind, "mean"] == pytest.approx(of(kind, "salary").mean())
        there = len(of(kind, "salary")) / (N / 2)
        assert model.parameter_table("salary (present)")[kind, 1] == pytest.approx(there)
        assert model.parameter_table("price")[kind, "mean of log"] == pytest.approx(np.log(of(kind, "price")).mean())
        assert model.parameter_table("age")[kind, "[30, 60)"] == pytest.approx(((of(kind, "age") // 30) == 1).mean())
    unbiased = model.reestimate(estimate="unbiased").parameter_table("warmth")
    assert unbiased["a", "variance"] == pytest.approx(of("a", "warmth").var(ddof=1))


@pytest.mark.parametrize("estimate", ["map", "bayes"])
def test_smoothed_parameters_are_their_closed_forms(estimate):
    amount = 2.0 if estimate == "map" else 1.0
    prior = {("sky", "wet"): tb.Dirichlet(amount), "smokes": tb.Beta(amount, amount)}
    model = tb.NaiveBayes(COLUMNS, estimate=estimate, prior=prior).fit(ROWS, "kind")
    for kind in ("a", "b"):
        sky, smokes = of(kind, "sky"), of(kind, "smokes")
        assert model.parameter_table("sky")[kind, "fog"] == pytest.approx(((sky == "fog").sum() + 1) / (len(sky) + 3))
        assert model.parameter_table("smokes")[kind, 1] == pytest.approx((smokes.sum() + 1) / (len(smokes) + 2))
    belief = tb.NormalInverseGamma(10.0, 2.0, 3.0, 40.0)
    warm = (
        tb.NaiveBayes({"warmth": tb.Gaussian()}, estimate=estimate, prior=belief)
        .fit(ROWS, "kind")
        .parameter_table("warmth")
    )
    x = of("a", "warmth")
    n, scatter = len(x), ((x - x.mean()) ** 2).sum()
    scale = 40 + scatter / 2 + 2 * n / (2 + n) * (x.mean() - 10) ** 2 / 2
    shape = 3 + n / 2
    assert warm["a", "mean"] == pytest.approx((20 + n * x.mean()) / (2 + n))
    assert warm["a", "variance"] == pytest.approx(scale / (shape - 1 if estimate == "bayes" else shape + 1.5))


def test_labels_are_those_that_predict_returns():
    X = RNG.normal(size=(30, 2))
    for y in (np.arange(30) % 3, np.arange(30) % 2 == 0, np.array(["x", "y"])[np.arange(30) % 2], np.arange(30.0) % 2):
        model = tb.NaiveBayes().fit(X, y)
        label = model.predict(X[:1])[0]
        assert model.class_prior_.columns == tuple(model.classes_.tolist())
        assert model.parameter_table(0)[label]["mean"] == model.parameter_table(0)[label, "mean"]
        assert model.class_prior_[label] == pytest.approx(
            np.exp(model.class_log_prior_)[list(model.classes_).index(label)]
        )
    with pytest.raises(KeyError, match="no True"):  # of a target of 0.0 and 1.0
        model.parameter_table(0)[True]


def test_yes_and_no_go_by_either_name_and_labels_by_their_own():
    rows, kinds = {"wet": [True, False, True, True]}, list("aabb")
    yes_no = tb.NaiveBayes(tb.Bernoulli()).fit(rows, kinds).parameter_table("wet")
    assert yes_no["a", True] == yes_no["a", 1] == yes_no["a"][True]
    assert yes_no["a", False] == yes_no["a", 0]
    assert pickle.loads(pickle.dumps(yes_no))["a", True] == yes_no["a", 1]
    whole = tb.NaiveBayes(tb.Categorical()).fit({"wet": [1, 0, 1, 1]}, kinds).parameter_table("wet")
    with pytest.raises(KeyError, match="no True"):
        whole["a", True]


def test_a_table_without_anything_given():
    model = tb.BayesianNetwork({"wet": ["rain"]}).fit({"rain": [True, False, True], "wet": [1, 0, 1]})
    root = model.cpt("rain")
    assert root[True] == pytest.approx(3 / 5)
    assert root[()] == pytest.approx({True: 3 / 5, False: 2 / 5})
    assert root.given == ()
    assert len(root.to_frame()) == 1
    with pytest.raises(KeyError, match="has no 1"):
        root[1]
    with pytest.raises(KeyError, match="expected rain"):
        model.cpt("wet")[True, 0, 1]
    assert "p(rain)" in root._repr_html_()
    assert "p(wet | rain)" in model.parameters_._repr_html_()


def test_names_that_are_not_there():
    model = tb.NaiveBayes(COLUMNS).fit(ROWS, "kind")
    with pytest.raises(DataError, match="Did you mean 'warmth'"):
        model.parameter_table("warmht")
    with pytest.raises(DataError, match="the name of a column"):
        model.parameter_table(["sky"])
    assert "nothing" not in model.parameters_
    assert model.parameters_.get("nothing") is None
    assert "warmth" in model.parameters_


@pytest.mark.slow
def test_blocks_of_words_are_lazy_brief_and_have_their_names():
    n_words = 130_000
    words = sp.random(200, n_words, density=1e-3, format="csr", random_state=0)
    words.data[:] = 1
    names = [f"word{k}" for k in range(n_words)]
    y = np.arange(200) % 20
    model = tb.NaiveBayes(prior=1).fit({"text": tb.NamedMatrix(words, names), "length": np.arange(200.0)}, y)
    found = model.parameters_
    assert list(found) == ["class", "text", "length"] or list(found) == ["class", "length", "text"]
    table = found["text"]
    assert "values" not in vars(table)
    assert len(repr(table)) < 6000
    assert "129,988 more columns" in repr(table)
    assert len(table._repr_html_()) < 60_000
    np.testing.assert_allclose(table.values.sum(axis=1), 1)
    one = found["word7"]
    assert one.title == "p(word7 | class)"
    assert one[3, "share"] == table[3, "word7"]
    np.testing.assert_array_equal(found["text", 7].values, one.values)
    counts = np.asarray(words[y == 3].sum(axis=0)).ravel()
    assert table[3, "word7"] == pytest.approx((counts[7] + 1) / (counts.sum() + n_words))
    again = tb.NaiveBayes(tb.Bernoulli(), prior=tb.Beta(2, 2), estimate="map").fit(words, y).parameter_table("x")
    assert again.title == "p(x = 1 | class)"
    assert again[3, 7] == pytest.approx((counts[7] + 1) / 12)


@pytest.mark.parametrize("covariance", tb.GaussianDiscriminant.families)
@pytest.mark.parametrize("estimate", ESTIMATES)
def test_discriminants_tell_columns_and_all_of_them(covariance, estimate):
    X, y = RNG.normal(size=(60, 3)), np.arange(60) % 2
    model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, y)
    for column in range(3):
        table = model.parameter_table(column)
        np.testing.assert_allclose(table.values[:, 2] ** 2, table.values[:, 1])
    if covariance in ("full", "tied"):
        table = model.parameter_table((0, 1, 2))
        assert table.given == ("class", "column")
        assert table.columns[2] == "covariance with 1"
        assert table[1, 2, "covariance with 2"] == pytest.approx(model.parameter_table(2)[1, "variance"])
    if estimate == "mle":
        np.testing.assert_allclose(model.parameter_table(1).values[:, 0], [X[y == k, 1].mean() for k in (0, 1)])
        within = X - np.stack([X[y == k].mean(axis=0) for k in (0, 1)])[y]
        own, pooled = [within[y == k].var(axis=0) for k in (0, 1)], within.var(axis=0)
        meant = {"full": own, "diagonal": own, "tied": [pooled] * 2, "tied_diagonal": [pooled] * 2}
        meant |= {"spherical": [[part.mean()] * 3 for part in own], "tied_spherical": [[pooled.mean()] * 3] * 2}
        for column in range(3):
            np.testing.assert_allclose(
                model.parameter_table(column).values[:, 1], np.array(meant[covariance])[:, column]
            )


def test_columns_without_spread_are_told_as_they_are():
    X = np.column_stack([np.full(10, 7.0), np.arange(10.0)])
    y = np.arange(10) % 2
    for model in (
        tb.NaiveBayes(),
        tb.GaussianDiscriminant(),
        tb.GaussianDiscriminant("tied"),
        tb.NaiveBayes(estimate="mle"),
    ):
        table = model.fit(X, y).parameter_table(0)
        assert table[0] == table[1] == {"mean": 7.0, "variance": 0.0, "std": 0.0}
    for covariance in tb.GaussianDiscriminant.families:
        same = tb.GaussianDiscriminant(covariance, estimate="map", prior=None).fit(np.full((6, 2), 3.0), y[:6])
        assert same.parameter_table(1)[0] == {"mean": 3.0, "variance": 0.0, "std": 0.0}
        assert not same.covariances_.any()
    assert model.parameter_table(1)[0, "variance"] > 0  # though rows cannot be scored under mle


def test_hidden_markov_models_tell_their_parts():
    diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
    weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]
    for estimate in ESTIMATES:
        model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate=estimate, end_state=True).fit(diary, weather)
        assert list(model.parameters_) == ["start", "transition", "end", 0]
        np.testing.assert_allclose(model.parameter_table("start").values, model.start_)
        np.testing.assert_allclose(model.parameter_table("transition").values, model.transition_)
        np.testing.assert_allclose(model.parameter_table("end").values[:, 1], model.end_)
        for label, shares in model.emission_[0].items():
            np.testing.assert_allclose(
                [model.parameter_table(0)["cold", label], model.parameter_table(0)["hot", label]], shares
            )
    smooth = model.reestimate(unseen="smooth").parameter_table(0)
    assert smooth.columns[-1] == "(unseen)"
    np.testing.assert_allclose(smooth.values.sum(axis=1), 1)
    numbers = tb.HiddenMarkovModel(estimate="mle").fit([[1.0, 2.0, 8.0]], [["u", "u", "v"]])  # v has no spread
    assert numbers.parameter_table(0)["u"] == pytest.approx({"mean": 1.5, "variance": 0.25, "std": 0.5})
    named = tb.HiddenMarkovModel().fit([{"start": ["a", "b"]}], [["u", "v"]])
    assert list(named.parameters_) == ["start", "transition", ("start",)]


def test_smoothed_levels_have_their_column():
    model = tb.NaiveBayes(COLUMNS, unseen="smooth", prior=1).fit(ROWS, "kind")
    table, known = model.parameter_table("sky"), of("a", "sky")
    assert table.columns[-1] == "(unseen)"
    assert table["a", "(unseen)"] == pytest.approx(1 / (len(known) + 4))
    assert table["a", "fog"] == pytest.approx(
        np.exp(
            tb.NaiveBayes({"sky": tb.Categorical()}, unseen="smooth", prior=1, class_prior={"a": 1.0, "b": 0.0})
            .fit(ROWS, "kind")
            .predict_joint_log_proba({"sky": ["fog"]})[0, 0]
        )
    )


def test_pairs_tell_of_any_two_columns():
    frame = pd.DataFrame(ROWS)[["sky", "wet", "age", "kind"]]
    tree = tb.TreeAugmentedNaiveBayes(bins=3).fit(frame, "kind")
    for name, parent in tree.parents_.items():
        table = tree.parameter_table(name)
        assert table.given == (("kind",) if parent is None else ("kind", parent))
        np.testing.assert_allclose(table.values.sum(axis=-1), 1)
    averaged = tb.AveragedOneDependence(bins=3, strength=2.0, prior=1).fit(frame, "kind")
    assert averaged.parameter_table("sky").given == ("kind",)
    pair = averaged.parameter_table(("sky", "wet"))
    assert pair.given == ("kind", "wet")
    assert pair.title == "p(sky | kind, wet)"
    some = (ROWS["kind"] == "a") & ROWS["wet"]
    fog = (ROWS["sky"] == "fog") & some
    meant = (fog.sum() + 2.0 * averaged.parameter_table("sky")["a", "fog"]) / (some.sum() + 2.0)
    assert pair["a", True, "fog"] == pytest.approx(meant)
    assert "'" in repr(averaged.parameter_table(("sky", "age")))
    # rows are scored by these very tables
    row = frame.drop(columns="kind")[:1]
    log_p = np.log(tree.class_prior_.values)
    cells = {"sky": row["sky"][0], "wet": bool(row["wet"][0])}
    bins = list(tree.parameter_table("age").columns)
    edges = [edge for edge in tree.columns_["age"].edges if edge is not None]
    cells["age"] = bins[int(np.searchsorted(edges, row["age"][0], side="right"))]
    for name, parent in tree.parents_.items():
        for k, kind in enumerate(("a", "b")):
            given = (kind,) if parent is None else (kind, cells[parent])
            log_p[k] += np.log(tree.parameter_table(name)[(*given, cells[name])])
    np.testing.assert_allclose(tree.predict_joint_log_proba(row)[0], log_p)


def test_the_nearest_mean_and_mixtures_and_what_was_chosen():
    X, y = np.concatenate([RNG.normal(size=(40, 2)), RNG.normal(3, 1, size=(40, 2))]), np.repeat(["u", "v"], 40)
    nearest = tb.NearestClassMean().fit(X, y)
    np.testing.assert_allclose([nearest.parameter_table(k).values[:, 0] for k in (0, 1)], nearest.means_.T)
    assert nearest.parameter_table(0).columns == ("mean",)
    assert nearest.class_prior_["u"] == pytest.approx(0.5)
    mixture = tb.Mixture(2, random_state=0).fit(X)
    assert list(mixture.parameters_) == ["component", 0, 1]
    assert mixture.parameter_table("component").values.sum() == pytest.approx(1)
    chosen = tb.AutoClassifier().fit(pd.DataFrame(X, columns=["p", "q"]).assign(y=y), "y")
    first = next(member for member in chosen.members_ if member.spec.kind not in TREES)
    assert first.spec.name in repr(chosen.parameters_)
    assert "members" in repr(chosen.parameters_)
    assert set(chosen.parameters_) >= {"p", "q"}
    assert chosen.parameter_table("p").title.startswith("p(p | y")
    assert chosen.class_prior_.columns == ("u", "v")
    with pytest.raises(DataError, match="no column"):
        chosen.parameter_table("r")


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_tables_of_one_class_one_row_and_nothing(estimate):
    rows = {"x": ["u"], "k": [2]}
    one = tb.NaiveBayes({"x": tb.Categorical(), "k": tb.Poisson()}, estimate=estimate).fit(rows, ["only"])
    assert one.parameter_table("x")["only", "u"] == 1.0
    assert one.class_prior_["only"] == 1.0
    empty = one.forget(rows, ["only"])
    assert empty.parameter_table("x").values.shape == (0, 0)
    assert empty.class_prior_.values.shape == (0,)
    assert repr(empty.parameters_)
    assert empty.parameters_._repr_html_()
    assert len(empty.parameters_.to_frame()) == 0
    declared = tb.NaiveBayes(tb.Categorical(), estimate=estimate).partial_fit([["u"]], ["a"], classes=["a", "b"])
    line = declared.parameter_table(0)["b", "u"]
    assert np.isnan(line) if estimate in ("mle", "unbiased") else line == 1.0
    assert ("unknown" in repr(declared.parameter_table(0))) == bool(np.isnan(line))


X3, Y2 = RNG.normal(size=(40, 3)), np.arange(40) % 2
FRAME = pd.DataFrame(ROWS)[["sky", "wet", "warmth", "kind"]]
MODELS = {
    "naive": lambda: tb.NaiveBayes(COLUMNS).fit(ROWS, "kind"),
    "discriminant": lambda: tb.GaussianDiscriminant(shrinkage=0.3, estimate="map").fit(X3, Y2),
    "nearest": lambda: tb.NearestClassMean("learned").fit(X3, Y2),
    "mixture": lambda: tb.Mixture(2, random_state=0).fit(X3),
    "tree": lambda: tb.TreeAugmentedNaiveBayes().fit(FRAME, "kind"),
    "averaged": lambda: tb.AveragedOneDependence().fit(FRAME, "kind"),
    "network": lambda: tb.BayesianNetwork({"wet": ["sky"], "warmth": ["wet", "kind"]}).fit(FRAME),
    "chain": lambda: tb.HiddenMarkovModel(end_state=True).fit([X3, X3[:5]], [Y2, Y2[:5]]),
    "chosen": lambda: tb.AutoClassifier(folds=2).fit(FRAME, "kind"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_saved_models_give_equal_tables(name, tmp_path):
    model = MODELS[name]()
    model.save(tmp_path / "model.tb")
    again = tb.load(tmp_path / "model.tb")
    assert list(again.parameters_) == list(model.parameters_)
    for name, table in model.parameters_.items():
        other = again.parameters_[name]
        assert (other.title, other.given, other.columns) == (table.title, table.given, table.columns)
        np.testing.assert_array_equal(other.values, table.values)
    assert repr(again.parameters_) == repr(model.parameters_)
    frame = model.parameters_.to_frame()
    assert next(iter(frame.columns)) == "column"
    assert list(frame.columns)[-2:] == ["parameter", "value"]
    assert len(frame) == sum(table.values.size for table in model.parameters_.values())


@pytest.mark.parametrize("name", ["naive", "discriminant", "network", "chain"])
def test_tables_travel_without_their_model(name):
    model = MODELS[name]()
    for found in (model.parameters_, model.posterior_):
        again = pickle.loads(pickle.dumps(found))
        assert list(again) == list(found)
        assert repr(again) == repr(found)
    table = next(iter(model.parameters_.values()))
    assert repr(pickle.loads(pickle.dumps(table))) == repr(copy.deepcopy(table)) == repr(table)
    assert repr(pickle.loads(pickle.dumps(model)).parameters_) == repr(model.parameters_)


def test_emptied_models_have_empty_tables():
    rows, y = {"x": [1.0, 2.0, 4.0], "s": ["u", "v", "u"]}, ["a", "b", "b"]
    for estimate in ESTIMATES:
        empty = tb.NaiveBayes(estimate=estimate).fit(rows, y).forget(rows, y)
        assert empty.parameter_table("x").values.shape == (0, 3)
        assert repr(empty.parameters_)
        network = tb.BayesianNetwork({"x": ["s"]}, estimate=estimate).fit(rows).forget(rows)
        assert network.cpt("x").values.shape == (0, 3)
        chain = tb.HiddenMarkovModel(estimate=estimate).fit([rows], [y]).forget([rows], [y])
        assert chain.parameter_table("x").values.shape == (0, 3)
        assert repr(chain.parameters_)
    X = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 1.0]])
    for model in (tb.GaussianDiscriminant(), tb.NearestClassMean("euclidean"), tb.AveragedOneDependence(bins=2)):
        assert repr(model.fit(X, y).forget(X, y).parameters_)


def test_frames_of_other_libraries_and_types():
    polars = pytest.importorskip("polars")
    frame = pd.DataFrame(ROWS)
    families = {name: COLUMNS[name] for name in ("sky", "wet", "calls", "warmth")}
    first = tb.NaiveBayes(families, prior=None).fit(frame, "kind").parameters_
    for other in (
        polars.from_pandas(frame),
        frame.convert_dtypes(),
        {name: list(column) for name, column in ROWS.items()},
    ):
        found = tb.NaiveBayes(families).fit(other, "kind").parameters_
        for name, table in first.items():
            assert found[name].columns == table.columns
            np.testing.assert_allclose(found[name].values, table.values)
    assert first["wet"].to_frame().loc["a", True] == first["wet"]["a", True]


def test_nodes_with_two_parents_and_measurements():
    frame = pd.DataFrame(ROWS)[["sky", "wet", "warmth"]]
    model = tb.BayesianNetwork({"warmth": ["sky", "wet"]}, estimate="mle").fit(frame)
    table = model.cpt("warmth")
    some = frame[(frame["sky"] == "fog") & frame["wet"]]["warmth"]
    assert table["fog", True] == pytest.approx(
        {"mean": some.mean(), "variance": some.var(ddof=0), "std": some.std(ddof=0)}
    )
    assert table["fog", True, "mean"] == table["fog", np.True_]["mean"]
    assert table.to_frame().loc[("fog", True), "mean"] == pytest.approx(some.mean())


@pytest.mark.parametrize(
    "model",
    [
        tb.NaiveBayes({"label": "auto", "yes": tb.Bernoulli(), "count": tb.Poisson(), "size": tb.LogNormal()}),
        tb.NaiveBayes({("size", "count"): tb.TiedGaussian()}, estimate="mle"),
        tb.NaiveBayes({"label": "auto"}, unseen="smooth"),
        tb.NaiveBayes({"size": tb.Binned([1.0, 2.0])}),
    ],
    ids=["families", "shared", "smooth", "bins"],
)
def test_intervals_are_those_of_the_beliefs_and_contain_the_numbers(model):
    rng = np.random.default_rng(0)
    rows = {"label": rng.choice(list("abc"), 60), "yes": rng.integers(0, 2, 60), "count": rng.poisson(3, 60)}
    rows |= {"size": rng.lognormal(size=60), "kind": rng.choice(["x", "y"], 60)}
    fitted = model.fit(rows, "kind")
    for name in fitted.parameters_:
        table = fitted.parameter_table(name)
        low, high = table.interval()
        assert low.shape == high.shape == table.values.shape
        assert ((low <= table.values) & (table.values <= high)).all()
        narrow, _ = table.interval(0.5)
        assert (narrow >= low).all()
    if "yes" in fitted.parameters_:
        end = fitted.posterior_["yes"].interval(0.95).low
        np.testing.assert_allclose(fitted.parameter_table("yes").interval()[0][:, 1], end)
        mean = fitted.posterior_["size"].interval(0.95).high.mean
        np.testing.assert_allclose(fitted.parameter_table("size").interval()[1][:, 0], mean)


def test_where_nothing_is_believed_intervals_are_unknown():
    coin = tb.BayesianNetwork.from_tables({"coin": []}, {"coin": ["heads", "tails"]}, {"coin": [0.5, 0.5]})
    assert np.isnan(coin.cpt("coin").interval()).all()
    rows = {"size": [1.0, 2.0, 4.0, 3.0], "mass": [2.0, 1.0, 3.0, 5.0], "kind": ["x", "x", "y", "y"]}
    full = tb.GaussianDiscriminant().fit(rows, "kind")
    assert not np.isnan(full.parameter_table("size").interval()).any()
    assert np.isnan(full.parameter_table(("size", "mass")).interval()).all()
