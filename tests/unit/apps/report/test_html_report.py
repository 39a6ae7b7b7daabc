"""The page about a model: everything in it is right, escaped, and works in a browser without a network."""

import html
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits, load_wine

import tallybayes as tb
from tallybayes.apps.report import report

pytest.importorskip("matplotlib")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
BAD = "<script>document.title='caught'</script>"


@pytest.fixture(scope="module")
def wine():
    """Rows to learn from and others, with names that would be commands."""
    frame = load_wine(as_frame=True).frame.rename(columns={"target": "kind", "ash": BAD})
    frame["kind"] = frame["kind"].map({0: "b&w", 1: BAD, 2: "c\"'"})
    frame["half"] = np.where(np.arange(len(frame)) % 2, "</script>", "odd")
    frame.loc[::3, "hue"] = np.nan
    return frame[::2], frame[1::2]


@pytest.fixture(scope="module")
def page(wine):
    return tb.NaiveBayes().fit(wine[0], "kind").report(wine[1]).html


def tried(page):
    """What the page knows of its rows."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))


@pytest.mark.slow
def test_the_page_says_what_is_measured(page, wine):
    model = tb.NaiveBayes().fit(wine[0], "kind")
    found = tb.evaluate(model, wine[1], "kind")
    assert f"{found.accuracy.value:.1%} ({found.accuracy.low:.1%} to {found.accuracy.high:.1%})" in page
    assert all(f">{part}</h2>" in page for part in ("Summary", "Training data", "What-if", "Example explanations"))
    assert "33% of the cells of hue are missing" in page or "34% of the cells of hue are missing" in page


@pytest.mark.slow
def test_what_an_audit_finds_is_on_the_page(wine):
    learned, told = wine[0], wine[1].copy()
    model = tb.NaiveBayes().fit(learned, "kind")
    told.loc[told.index[4], "malic_acid"] = 900.0
    told.loc[told.index[6], "half"] = "Atlantis"
    told["hue"] += 5
    audited = tb.audit(model, told, "kind", by="half")
    assert audited.rows[0].row == 4
    page = model.report(told, by="half").html
    part = re.search(r'<section id="checks">(.*?)</section>', page, re.DOTALL).group(1)
    assert f"{len(audited.findings)} findings beyond chance" in part
    assert re.search(r">5</th><td>malic_acid</td>", part)  # rows are counted from 1 on pages
    assert re.search(r"<th scope=\"row\">half</th><td>Atlantis</td><td[^>]*>1</td><td[^>]*>7</td>", part)
    moved = [str(one) for one in audited.drifted]
    assert "hue" in moved
    assert part.count(">drifted<") == len(moved)
    one = next(each for each in audited.columns if each.column == "hue")
    assert f"{one.bits:.3f}</td>" in part
    assert f"{one.low:.3f} to {one.high:.3f}" in part
    assert "Subgroup performance, with 99 % intervals" in part
    with pytest.raises(tb.DataError, match="no column 'nowhere'"):
        model.report(told, by="nowhere")
    plain = tb.NearestClassMean().fit(learned[["alcohol"]], learned["kind"]).report(told[["alcohol"]], told["kind"])
    assert 'id="checks"' not in plain.html


@pytest.mark.slow
def test_every_figure_and_table_says_how_to_read_it(page):
    body = page[: page.index('<section id="what-if">')]
    for shown in re.findall(r"</table></div>(.{0,20})|<img [^>]*>(.{0,20})", body, re.DOTALL):
        assert "".join(shown).startswith(('<p class="guide">', "<figcaption>"))
    assert body.count("<table>") + body.count('<table class="shaded">') >= 8
    assert body.count("<figcaption>") >= 3


@pytest.mark.slow
def test_names_are_escaped(page):
    assert BAD not in page
    assert html.escape(BAD) in page
    assert page.count("<script") == 2
    assert page.count("</script>") == 2


@pytest.mark.slow
def test_nothing_is_asked_of_a_network(page):
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:|//)""", page)


@pytest.mark.slow
def test_the_part_to_try_knows_the_model(page, wine):
    """Every change of a cell, and of several at once, gives what the model says of the changed row."""
    model, known = tb.NaiveBayes().fit(wine[0], "kind"), tried(page)
    assert known["additive"]
    assert known["missing"]
    row = known["rows"][2]
    cells = wine[1].iloc[[row["number"] - 1]].drop(columns="kind")
    np.testing.assert_allclose(row["log"], np.maximum(model.predict_log_proba(cells)[0], -700), atol=1e-4)
    names = [column["name"] for column in known["columns"]]
    one, two = names.index("hue"), names.index("proline")
    changed = cells.assign(hue=np.nan, proline=float(known["columns"][two]["choices"][3]))
    log = np.array(row["log"]) + row["changes"][one][0] + row["changes"][two][3]
    expected = model.predict_proba(changed)[0]
    np.testing.assert_allclose(np.exp(log - log.max()) / np.exp(log - log.max()).sum(), expected, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        tb.GaussianDiscriminant(),
        tb.NearestClassMean(),
        tb.AveragedOneDependence(),
        tb.NaiveBayes(calibration="temperature"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_classifier_has_a_page(model, wine):
    columns = ["alcohol", "proline", "flavanoids", "kind"]
    found = model.fit(wine[0][columns], "kind").report(wine[1][columns])
    assert not tried(found.html)["additive"]
    assert "What-if" in found.html


@pytest.mark.slow
def test_images_of_classes_and_rows_without_names():
    X, y = load_digits(return_X_y=True)
    found = tb.NaiveBayes(tb.Gaussian()).fit(X[:900], y[:900]).report(X[900:1100], y[900:1100])
    assert found.html.count("data:image/svg") >= 3
    assert "The mean image of every class" in found.html


@pytest.mark.slow
def test_what_to_be_careful_about():
    rng = np.random.default_rng(0)
    y = np.array(["a"] * 300 + ["b"] * 280 + ["rare"] * 5)
    rows = {
        "x": rng.normal(size=585) + 2 * (y == "a"),
        "group": rng.choice(["p", "q"], 585),
        "noise": rng.normal(size=585),
    }
    rows["x"] = np.where((rows["group"] == "q"), rng.normal(size=585), rows["x"])
    found = report(tb.NaiveBayes().fit({**rows, "y": y}, "y"), {**rows, "y": y}, "y").html
    assert "Few training rows in the class rare (5)" in found
    assert "Rows with group = q have accuracy" in found


@pytest.mark.slow
def test_advice_is_from_held_out_rows_only():
    rng = np.random.default_rng(0)
    y = pd.Series(np.arange(400) % 2, name="won")
    rows = pd.DataFrame({"a": rng.normal(y), "noise": rng.normal(size=400), "twin": 0.0})
    rows["twin"] = rows["a"]
    rows["b"] = rows["a"] + rng.normal(0, 0.01, 400)
    train, test = slice(0, 200), slice(200, 400)
    model = tb.NaiveBayes({...: tb.Gaussian()}, calibration=None).fit(rows[train], y[train])
    silent, advising = (model.report(rows[test], y[test], held_out=held_out).html for held_out in (False, True))
    for page in (model.report(rows[train], y[train]).html, silent):
        assert "log loss is" not in page
        assert "calibration=" not in page
        assert "too optimistic if the model was fitted on the rows" in page
    assert "On these held-out rows the log loss is lower without any one of:" in advising
    assert "fitted without the rows of this page" in advising
    assert "<title>won by NaiveBayes</title>" in advising
    assert "Feature importance" in silent
    assert ">noise</th>" in silent


@pytest.mark.slow
def test_possible_leakage_is_on_the_page():
    rng = np.random.default_rng(0)
    y = pd.Series(np.arange(400) % 2, name="survived")
    rows = pd.DataFrame({"age": rng.normal(y, 2), "alive": np.where(y, "yes", "no")})
    page = tb.NaiveBayes().fit(rows, y).report(rows.assign(survived=y)).html
    said = html.unescape(page)
    assert said.count("Possible target leakage: column 'alive' alone predicts 'survived'") == 1
    assert "Possible target leakage" not in tb.NaiveBayes().fit(rows[["age"]], y).report(rows[["age"]], y).html


def test_what_has_no_page(wine):
    with pytest.raises(tb.DataError, match="expected a fitted classifier"):
        report(tb.BayesianNetwork({"kind": []}).fit(wine[0]), wine[1], "kind")
    with pytest.raises(tb.DataError, match="0 rows"):
        report(tb.NaiveBayes().fit(wine[0], "kind"), wine[1][:0], "kind")


def test_rows_without_labels_and_sparse_rows(wine):
    model = tb.NaiveBayes().fit(wine[0], "kind")
    with pytest.raises(tb.DataError, match=r"no column 'kind' in the data.*\n    Check the spelling, or pass data"):
        model.report(wine[1].drop(columns="kind"))
    words = csr_matrix(np.eye(4))
    with pytest.raises(tb.DataError, match="the data is a sparse matrix"):
        tb.NaiveBayes(tb.Multinomial()).fit(words, list("abab")).report(words, list("abab"))


@pytest.mark.slow
def test_rows_of_a_file_and_of_an_iterator(wine, tmp_path):
    columns = ["alcohol", "proline", "kind"]
    model, rows = tb.NaiveBayes().fit(wine[0][columns], "kind"), wine[1][columns]
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    expected = tried(model.report(rows).html)
    assert tried(model.report(tmp_path / "rows.parquet").html) == expected
    found = model.report(iter([rows[:40], rows[40:]])).html
    assert f"<b>{len(rows)}</b><span>rows on this page" in found


@pytest.mark.slow
def test_saving_is_whole_or_not_at_all(page, tmp_path, wine):
    found = tb.NaiveBayes().fit(wine[0][["hue", "kind"]], "kind").report(wine[1][["hue", "kind"]])
    found.save(tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == found.html
    assert "srcdoc" in found._repr_html_()


def in_chromium(page, folder, script):
    """What the page is after a script has run in it, and what the browser complained of."""
    path = folder / "page.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=3000"]
    options += [f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND"]
    done = subprocess.run(
        [CHROMIUM, *options, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, said


@pytest.mark.slow
@in_a_browser
def test_the_page_works_in_a_browser(page, tmp_path):
    script = """
      const predicted = () => document.getElementById("prediction").textContent, out = [predicted()];
      const set = (input, value, kind) => {
        input.value = value; input.dispatchEvent(new Event(kind)); out.push(predicted());
      };
      set(document.getElementById("row"), "3", "change");
      document.querySelectorAll("#cells select").forEach((select) => set(select, "0", "change"));
      set(document.getElementById("prior-0"), "0.9", "input");
      document.querySelectorAll("#cost input").forEach((input, at) => {
        if (at % 3 === 1) set(input, at === 4 ? "0" : "50", "input");
      });
      out.push(document.getElementById("decisions").textContent);
      out.push(document.getElementById("summary").textContent);
      document.getElementById("reset").click();
      out.push(predicted());
      const pre = document.createElement("pre");
      pre.id = "out"; pre.textContent = JSON.stringify(out); document.body.append(pre);
    """
    found, said = in_chromium(page, tmp_path, script)
    assert not said
    assert "<title>kind by NaiveBayes</title>" in found
    out = json.loads(html.unescape(re.search(r'<pre id="out">(.*?)</pre>', found, re.DOTALL).group(1)))
    assert len(set(out)) > 5  # the answer moves
    assert re.fullmatch(r"Accuracy: .* % of \d+ rows\. Mean cost: .*", out[-3])
    assert "accuracy of always predicting" in out[-2]  # the summary stays
    classes = tried(page)["classes"]
    all_missing = out[1 + len(tried(page)["columns"])]
    assert f"({100 * max(tried(page)['prior']):.1f} %)" in all_missing  # the prior speaks where all cells are missing
    assert any(name in out[-1] for name in classes)


@pytest.mark.slow
@in_a_browser
@pytest.mark.parametrize("width", [390, 1100])
def test_the_page_fits_the_screen(page, tmp_path, width):
    script = "document.title = document.documentElement.scrollWidth + ' ' + window.innerWidth"
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--window-size={width},800",
        f"--user-data-dir={tmp_path}/p",
    ]
    done = subprocess.run(
        [CHROMIUM, *options, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    wide, there = map(int, re.search(r"<title>(\d+) (\d+)</title>", done.stdout).groups())
    assert wide <= max(there, width)


@pytest.mark.slow
@pytest.mark.parametrize("given", [list, np.array, pd.Series], ids=["list", "array", "series"])
def test_rows_that_are_one_text_each(given):
    texts, kinds = ["win money", "win now", "read me", "meeting <now>"] * 5, ["spam", "spam", "ham", "ham"] * 5
    model = tb.NaiveBayes(tb.Text()).fit(texts, kinds)
    page = model.report(given(texts), kinds).html
    assert "meeting" in page
    assert "<now>" not in page


def test_neither_pandas_nor_matplotlib_is_needed(tmp_path):
    # `make demo` and the extra "cli" install neither.
    code = "import sys\nclass Hidden:\n    def find_spec(self, name, path=None, target=None):\n"
    code += "        if name in ('pandas', 'matplotlib'): raise ModuleNotFoundError(name)\n"
    code += "sys.meta_path.insert(0, Hidden())\n"
    code += "import tallybayes as tb\n"
    code += "rows = {'x': [1.0, 2.0, 1.5, 2.5] * 9, 'z': [1.0, 2.1, 1.4, 2.6] * 9, 's': list('uvuw') * 9}\n"
    code += "y = list('abab') * 9\n"
    code += "for model in (tb.NaiveBayes(), tb.AutoClassifier().fit(rows, y)):\n"
    code += "    print('Training data' in model.fit(rows, y).report(rows, y).html)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout == "True\nTrue\n", found.stderr
