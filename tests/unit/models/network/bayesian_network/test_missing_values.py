"""Informative missing values in Bayesian networks, against networks with explicit levels and indicators."""

import pickle
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, LabelError, StatisticsError

PARENTS = {"paid": ["job"], "kids": ["job", "paid"], "happy": ["paid", "kids"], "salary": ["paid"], "age": ["job"]}
COLUMNS = {
    "paid": tb.WithMissing(tb.Categorical()),
    "kids": tb.WithMissing(tb.Categorical((0, 1, 2))),
    "salary": tb.WithMissing(tb.Gaussian()),
}
BY_HAND = {"kids": tb.Categorical((0, 1, 2, 99)), "has salary": tb.Bernoulli()}


def draw(n=150, seed=0):
    rng = np.random.default_rng(seed)
    job = rng.choice(["field", "office", "none"], n)
    paid = np.where(rng.random(n) < np.where(job == "none", 0.8, 0.2), None, rng.choice(["low", "high"], n))
    kids = pd.array(rng.integers(0, 3, n), dtype="Int64")
    kids[rng.random(n) < 0.3] = pd.NA
    salary = np.where(rng.random(n) < np.where(paid == "low", 0.6, 0.2), np.nan, rng.normal(np.where(paid, 30, 20)))
    happy = rng.random(n) < np.where(pd.isna(paid), 0.2, 0.7)
    if n > 2:  # seen and not, whatever the rows
        paid[:2], salary[:2] = [None, "low"], [np.nan, 20.0]
    return pd.DataFrame(
        {"job": job, "paid": paid, "kids": kids, "salary": salary, "happy": happy, "age": rng.normal(size=n)}
    )


def written_out(frame):
    flags = {"has salary": frame["salary"].notna().astype(float)} if "salary" in frame else {}
    gone = {"paid": "~gone", "kids": 99}
    return frame.fillna({name: level for name, level in gone.items() if name in frame}).assign(**flags)


def network(**settings):
    return tb.BayesianNetwork(PARENTS, columns=COLUMNS, **settings)


def twin(**settings):
    return tb.BayesianNetwork({**PARENTS, "has salary": ["paid"]}, columns=BY_HAND, **settings)


@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
@pytest.mark.parametrize("weighted", [False, True])
def test_missing_values_equal_an_explicit_level_or_indicator(estimate, weighted):
    frame = draw(400)
    weight = np.random.default_rng(1).integers(0, 4, 400).astype(float) if weighted else None
    model = network(estimate=estimate).fit(frame, sample_weight=weight)
    other = twin(estimate=estimate).fit(written_out(frame), sample_weight=weight)
    np.testing.assert_allclose(model.score_samples(frame), other.score_samples(written_out(frame)), rtol=1e-12)
    for node in ("job", "paid", "kids", "happy"):
        found, expected = model.predict_proba(frame, node), other.predict_proba(written_out(frame), node)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert model.n_parameters_ == other.n_parameters_
    assert model.bic_ == pytest.approx(other.bic_)
    if estimate == "bayes":
        assert model.log_evidence() == pytest.approx(other.log_evidence(), rel=1e-12)
    assert model.columns_ == COLUMNS | {"job": tb.Categorical(), "happy": tb.Categorical(), "age": tb.Gaussian()}
    assert model.levels_["paid"] == ("high", "low", "(missing)")
    assert model.levels_["kids"] == (0, 1, 2, "(missing)")
    assert {node: set(above) for node, above in model.graph_.parents.items()} == {
        "job": set(),
        **{node: set(above) for node, above in PARENTS.items()},
    }


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
def test_the_laws_of_counting(seed):
    frame, rng = draw(40, seed), np.random.default_rng(seed)
    every, cut = np.arange(40), int(rng.integers(3, 39))

    def fit(part, weight=None):
        return network().fit(frame.iloc[part], sample_weight=weight)

    whole = fit(every)
    assert fit(rng.permutation(40)).tally_.isclose(whole.tally_)
    assert fit(every[:cut]).partial_fit(frame[cut:]).tally_.isclose(whole.tally_)
    assert (fit(every[:cut]) + fit(every[cut:])).tally_.isclose(whole.tally_)
    assert whole.reestimate().forget(frame[cut:]).tally_.isclose(fit(every[:cut]).tally_)
    times = rng.integers(0, 3, 40)
    if times.any():
        assert fit(every, times).tally_.isclose(fit(np.repeat(every, times)).tally_)


def by_enumeration(model, node, known):
    """p(node | known) summed over all combinations of the labels' levels, whatever the clique tree does."""
    labels = list(model.levels_)
    total = dict.fromkeys(model.levels_[node], 0.0)
    for levels in product(*(model.levels_[name] for name in labels)):
        row, p = dict(zip(labels, levels, strict=True)), 1.0
        if any(name in known and row[name] != known[name] for name in labels):
            continue
        for name in labels:
            p *= model.cpt(name).values[
                tuple(model.levels_[one].index(row[one]) for one in (*model.graph_.parents[name], name))
            ]
        if "salary" in known:
            place = model.levels_["paid"].index(row["paid"])
            there = model.cpt("salary (present)").values[place, 1]
            p *= (
                1 - there
                if known["salary"] is None
                else there
                * np.exp(
                    model._estimated_network.inference.leaves["salary"].log_prob(np.array([[known["salary"]]]))[
                        0, place, 0
                    ]
                )
            )
        total[row[node]] += p
    return np.array(list(total.values())) / sum(total.values())


@pytest.mark.parametrize(
    "known",
    [{"paid": "(missing)"}, {"salary": None}, {"salary": 25.0}, {"kids": "(missing)", "happy": True, "salary": None}],
)
def test_queries_by_enumeration(known):
    model = network().fit(draw())
    for node in ("job", "paid", "kids", "happy"):
        if node not in known:
            np.testing.assert_allclose(
                model.query(node, known).probabilities, by_enumeration(model, node, known), rtol=1e-10
            )
    row = {name: [None if value == "(missing)" else value] for name, value in known.items()}
    np.testing.assert_allclose(model.probability(known), np.exp(model.score_samples(row))[0], rtol=1e-12)


@pytest.mark.parametrize("absent", [None, np.nan, pd.NA, "(missing)"], ids=["None", "NaN", "NA", "shown"])
def test_evidence_of_a_missing_value_in_any_form(absent):
    model = network().fit(draw())
    found = model.query("job", {"paid": absent, "salary": absent})
    row = {"paid": [None], "salary": [np.nan]}
    np.testing.assert_allclose(found.probabilities, model.predict_proba(row, "job")[0], rtol=1e-12)
    hinted = model.query("job", {"paid": {"high": 0, "low": 0, absent: 2.0}})
    np.testing.assert_allclose(hinted.probabilities, model.query("job", {"paid": absent}).probabilities, rtol=1e-12)
    assert model.query("paid")["(missing)"] == pytest.approx(model.probability({"paid": absent}))
    done = model.query("happy", do={"paid": absent, "salary": absent})
    np.testing.assert_allclose(done.probabilities, model.query("happy", do={"paid": None}).probabilities, rtol=1e-12)
    assert model.most_probable({"paid": absent})["paid"] == "(missing)"
    drawn = model.sample(20, {"paid": absent}, do={"salary": absent}, random_state=0)
    assert drawn["paid"].isna().all()
    assert drawn["salary"].isna().all()


def test_unobserved_is_not_missing():
    frame = draw()
    model = network().fit(frame)
    new = frame.assign(paid="never seen")
    np.testing.assert_allclose(
        model.predict_proba(new, "job"), model.predict_proba(frame.drop(columns="paid"), "job"), rtol=1e-12
    )
    assert np.abs(model.predict_proba(new, "job") - model.predict_proba(frame.assign(paid=None), "job")).max() > 0.05
    strange = frame.astype({"salary": object, "kids": object})
    strange.loc[3, "salary"], strange.loc[5, "kids"] = "no number", "many"
    with pytest.warns(tb.InvalidValueWarning, match=r"'many' in column 'kids'.*'no number' in column 'salary'"):
        odd = model.predict_proba(strange, "job")
    expected = model.predict_proba(frame, "job")
    expected[3] = model.predict_proba(frame[3:4].drop(columns="salary"), "job")
    expected[5] = model.predict_proba(frame[5:6].drop(columns="kids"), "job")
    np.testing.assert_allclose(odd, expected, rtol=1e-12)
    with pytest.raises(LabelError, match="never seen"):
        model.reestimate(unseen="error").predict_proba(new, "job")
    np.testing.assert_allclose(
        model.reestimate(unseen="error").predict_proba(frame, "job"), model.predict_proba(frame, "job")
    )


def test_samples_and_imputed_cells():
    frame = draw(2000)
    model = network().fit(frame)
    drawn = model.sample(4000, random_state=0)
    assert list(drawn) == list(model.graph_.nodes)
    for name in frame:
        assert drawn[name].isna().mean() == pytest.approx(frame[name].isna().mean(), abs=0.04)
    assert model.partial_fit(drawn).n_parameters_ == network().fit(frame).n_parameters_
    model = network().fit(frame)
    filled = model.impute(frame)  # absence is known, so nothing is filled in for it
    for name in frame:
        assert (filled[name].isna() == frame[name].isna()).all()
        assert (filled[name].dropna() == frame[name].dropna().astype(filled[name].dropna().dtype)).all()
    alone = model.impute(frame[["job"]])
    assert alone["paid"].isna().equals(frame["job"] == "none")
    arrays = network().fit(frame.to_dict("list")).sample(50, random_state=0)
    assert set(arrays["paid"]) == {"low", "high", None}
    assert arrays["salary"].dtype == float


def test_mean_of_a_continuous_node_with_indicator():
    frame = draw(600)
    model = network().fit(frame)
    rows_with_evidence = frame[["job", "kids", "happy"]].assign(
        paid=np.where(np.arange(600) % 2, "never seen", frame["paid"])
    )
    there = model.predict(rows_with_evidence, "salary (present)")
    shares, table = model.predict_proba(rows_with_evidence)["paid"], model.cpt("salary (present)").values[:, 1]
    np.testing.assert_allclose(there, shares @ table, rtol=1e-10)
    means = model.cpt("salary").values[:, 0]
    expected = (shares * table) @ means / (shares @ table)  # if present, given its parents
    expected[there < 0.5] = np.nan
    np.testing.assert_allclose(model.predict(rows_with_evidence, "salary"), expected, rtol=1e-10)
    assert 0 < np.isnan(expected).mean() < 1
    np.testing.assert_array_equal(model.predict(frame.assign(salary=1e6), "salary"), model.predict(frame, "salary"))


@pytest.mark.parametrize("missing", ["available", "em"])
def test_other_cells_may_be_missing(missing):
    frame = draw(300)
    frame["job"] = np.where(np.random.default_rng(1).random(300) < 0.3, None, frame["job"])
    settings = {"missing": missing, "estimate": "map"}
    model, other = network(**settings).fit(frame), twin(**settings).fit(written_out(frame))
    np.testing.assert_allclose(model.cpt("paid").values, other.cpt("paid").values, atol=1e-9)
    np.testing.assert_allclose(model.cpt("salary").values, other.cpt("salary").values, rtol=1e-6)
    np.testing.assert_allclose(
        model.predict_proba(frame, "job"), other.predict_proba(written_out(frame), "job"), atol=1e-7
    )
    more = draw(50, 7)
    np.testing.assert_allclose(
        model.partial_fit(more).cpt("kids").values,
        other.partial_fit(written_out(more)).cpt("kids").values,
        atol=1e-9,
    )
    if missing == "em":
        with pytest.raises(DataError, match="column 'job' has missing cells"):
            model.partial_fit(frame)


def test_hidden_node():
    frame = draw(300)
    columns = {"kind": tb.Categorical((0, 1)), **COLUMNS}
    model = tb.BayesianNetwork(
        {name: ["kind"] for name in COLUMNS}, columns=columns, missing="em", random_state=0, max_iter=500
    ).fit(frame)
    there = model.cpt("salary (present)").values[:, 1]
    assert model.query("kind").probabilities @ there == pytest.approx(frame["salary"].notna().mean(), abs=0.02)
    with pytest.raises(DataError, match="A node that is never observed"):
        tb.BayesianNetwork({"paid": ["h"]}, columns={"h": tb.WithMissing(tb.Categorical((0, 1)))}, missing="em").fit(
            frame
        )


def test_files_tables_and_other_networks(tmp_path):
    frame = draw()
    model = network().fit(frame)
    expected = model.score_samples(frame)
    model.save(tmp_path / "model")
    model.tally_.save(tmp_path / "tally")
    assert tb.load(tmp_path / "tally") == model.tally_
    for back in (
        tb.load(tmp_path / "model"),
        pickle.loads(pickle.dumps(model)),
        network().fit_tally(model.tally_),
        tb.BayesianNetwork(model.graph_.parents).fit_tally(model.tally_),
    ):
        assert back.columns_ == model.columns_
        np.testing.assert_array_equal(back.score_samples(frame), expected)
        assert back.partial_fit(frame[:3]).forget(frame[:3]).tally_.isclose(model.tally_)
    tables = model.to_tables()
    assert tables.levels["paid"] == ("high", "low", None)
    given_tables = tb.BayesianNetwork.from_tables(tables.parents, tables.levels, tables.tables)
    assert given_tables.columns_["paid"] == tb.WithMissing(tb.Categorical(("high", "low")))
    labels = frame[["job", "paid", "kids", "happy"]]
    np.testing.assert_allclose(given_tables.score_samples(labels), model.score_samples(labels), rtol=1e-12)
    given_tables.save(tmp_path / "given")
    np.testing.assert_array_equal(tb.load(tmp_path / "given").score_samples(labels), given_tables.score_samples(labels))
    given_tables.to_bif(tmp_path / "labels.bif")
    read = tb.BayesianNetwork.from_bif(tmp_path / "labels.bif")
    assert read.query("paid", {"happy": "True"})["(missing)"] == pytest.approx(
        model.query("paid", {"happy": True})["(missing)"], rel=1e-12
    )
    assert model.to_networkx().nodes["paid"]["levels"] == ("high", "low", "(missing)")
    prior = tb.BayesianNetwork(PARENTS, columns=COLUMNS, prior=tb.BDe(given_tables, 1e9)).fit(frame[:5])
    np.testing.assert_allclose(prior.cpt("paid").values, model.cpt("paid").values, atol=1e-6)
    one, other = (
        tb.BayesianNetwork({"paid": ["job"]}).fit_tally(
            tb.BayesianNetwork({"paid": ["job"]}, columns=columns).fit(frame).tally_
        )
        for columns in ({"paid": COLUMNS["paid"]}, "auto")
    )
    with pytest.raises(StatisticsError, match="column 'paid' is WithMissing"):
        one + other


def test_rows_in_files_and_databases(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    frame = draw(500)
    model = network().fit(frame)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    found = network().fit(tmp_path / "rows.parquet")
    assert found.tally_.isclose(model.tally_)
    np.testing.assert_allclose(found.score_samples(tmp_path / "rows.parquet"), model.score_samples(frame), rtol=1e-12)
    connection = duckdb.connect()
    connection.register("rows", frame)
    connection.execute("CREATE TABLE there AS SELECT *, 1 + (happy::INT) AS w FROM rows")
    rows = tb.table(connection, "there")
    rows.batches = None  # it counts
    assert network().fit(rows).tally_.isclose(model.tally_, 1e-9)
    weighed = network().fit(frame, sample_weight=1.0 + frame["happy"])
    assert network().fit(rows, sample_weight="w").tally_.isclose(weighed.tally_, 1e-9)
    assert network().fit(rows).forget(rows).tally_.factors == model.tally_.factors


@pytest.mark.slow
def test_all_predictions():
    frame = draw(300)
    model = network().fit(frame)
    assert "p(salary | paid)  WithMissing(Gaussian())" in repr(model)
    assert "6 nodes, 7 edges" in repr(model)
    shown = {line.column: line for line in model.summary().columns}
    assert shown["paid"].missing == pytest.approx(frame["paid"].isna().mean())
    assert shown["salary"].missing == pytest.approx(frame["salary"].isna().mean())
    assert model.reestimate(prior={"salary (present)": tb.Beta(5, 5)}).prior_["salary (present)"] == tb.Beta(5, 5)
    assert "present" in [text.get_text() for text in model.plot().axes[0].texts]
    picture = model.plot(given={"paid": "low"})
    assert any("→ missing, present 0.6" in text.get_text() for text in picture.axes[0].texts)
    assert "(missing)" in list(model.plot_posteriors({"salary": None}).to_frame()["level"])
    evaluation = tb.evaluate(model, frame, "paid")
    assert evaluation.log_loss.value < 1.1
    assert "(missing)" in repr(evaluation)
    assert tb.cross_validate(model, frame, "kids").log_loss.value > 0
    check = tb.predictive_check(model, frame)
    assert any("salary (present)" in str(line) for line in check.table)
    other = tb.BayesianNetwork({**PARENTS, "salary": ["job"]}, columns=COLUMNS).fit(frame)
    assert len(tb.compare({"one": model, "other": other}).description_length) == 2
    assert tb.compare({"one": model, "same": network().partial_fit(frame)})
    tree = tb.learn_tree(frame.drop(columns=["salary", "age"]), columns={n: COLUMNS[n] for n in ("paid", "kids")})
    assert tree.columns_["paid"] == COLUMNS["paid"]
    assert tb.learn_tree(frame, "job", columns=COLUMNS).columns_["salary"] == COLUMNS["salary"]


def test_learned_tree_with_missing_values_as_levels():
    rng = np.random.default_rng(0)
    flag = rng.random(500) < 0.5
    note = np.where(flag, None, "a")  # nothing but whether it is there
    rows = {"note": note, "noise": rng.integers(0, 2, 500), "flag": flag}
    tree = tb.learn_tree(rows, columns={"note": tb.WithMissing(tb.Categorical())})
    assert ("note", "flag") in tree.graph_.edges
    assert tree.query("flag", {"note": None})[True] > 0.98
    columns = {"note": tb.WithMissing(tb.Categorical())}
    graph = tb.BayesianNetwork(tb.learn_structure(rows, columns=columns)).graph_
    assert {frozenset(edge) for edge in graph.edges} == {frozenset(("note", "flag"))}


def test_invalid_networks_raise():
    frame = draw()
    with pytest.raises(DataError, match=r"beside a column 'salary \(present\)'"):
        network().fit(frame.assign(**{"salary (present)": 1.0}))
    with pytest.raises(DataError, match="a block of columns"):
        tb.BayesianNetwork({"b": ["y"]}, columns={"b": tb.WithMissing(tb.Gaussian())}).fit(
            {"b": np.ones((3, 2)), "y": [0, 1, 1]}
        )
    with pytest.raises(DataError, match="linear models with Gaussian noise"):
        tb.BayesianNetwork({"age": ["salary"]}, columns={"salary": COLUMNS["salary"]}).fit(frame)
    model = network().fit(frame)
    with pytest.raises(DataError, match="'age' is continuous, and its value is None"):
        model.query("job", {"age": None})
    with pytest.raises(LabelError, match="has no level None"):
        model.query("paid", {"job": None})
    with pytest.raises(LabelError, match="the name of the level of missing values"):
        network().fit(frame.assign(paid=frame["paid"].fillna("(missing)")))
    with pytest.raises(DataError, match="no node 'salary here'"):
        model.predict(frame, "salary here")


def test_networks_without_missing_values_are_unchanged():
    frame = draw().dropna()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = tb.BayesianNetwork(PARENTS, columns={"kids": tb.Categorical()}).fit(frame)
    assert model.tally_.schema.missing_level_domains == ()
    assert None not in model.tally_.domains["paid"].levels
