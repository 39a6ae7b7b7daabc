"""Run the benchmarks and write their tables into ``results/``; then compute the summary table of RESULTS.md from them.

Run it with ``python benchmarks/results.py [name ...]``: all benchmarks (one to two hours on an idle machine), or those
whose file and arguments begin with a name ("text", "spam speed"). ``--summary`` computes the summary only.

In ``results/NAME.md``, a comment with a command precedes the output of that command. The text around it is written by
hand: read it again after a run. If a command fails, its old output stays, and the exit code is 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parent
SUMMARY = FOLDER / "RESULTS.md"
OUTPUT = re.compile(r"(<!-- python benchmarks/(\w+)\.py ?([^\n]*?) -->\n)(.*?)<!-- end -->\n", re.DOTALL)
ROWS = re.compile(r"(?<=<!-- summary -->\n).*?(?=<!-- end -->\n)", re.DOTALL)


def tables(page: str) -> dict[str, list[list[str]]]:
    """Return the tables of a page, each a list of rows, by their headings or, without one, by their first cells."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    rows: list[list[str]] = []
    for line in page.split("\n"):
        if line.startswith("#"):
            heading = line.strip("# ")
        if not line.startswith("|"):
            rows = []
            continue
        if line.startswith("|--"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not rows:
            title = cells[0] if cells[0] not in ("", "contender", "model", "work") else heading
            rows = found[f"{title} (2)" if title in found else title] = []
        rows.append(cells)
    return found


class Results:
    """The figures in the tables of ``results/``."""

    def __init__(self, folder: Path) -> None:
        self.tables = {page.stem: tables(page.read_text(encoding="utf-8")) for page in sorted(folder.glob("*.md"))}

    def figure(self, page: str, table: str, row: str, column: str) -> float:
        """Return the number in a row and a column, which is named by a part of its heading."""
        heads, *rows = self.tables[page][table]
        position = next(index for index, head in enumerate(heads) if column in head)
        found = [cells[position] for cells in rows if cells[0] == row]
        if not found:
            raise KeyError(f"results/{page}.md: {table!r} has no row {row!r}; it has {[cells[0] for cells in rows]}")
        return float(found[0].replace(",", "").rstrip("% ×s"))

    def times(self, page: str, table: str, row: str, column: str = "× faster than") -> str:
        """Return a factor in three digits, followed by a multiplication sign."""
        return f"{short(self.figure(page, table, row, column))} ×"


def short(value: float) -> str:
    """Return a number in three digits, or all digits before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def naive_bayes(task: str, row: str, peer: str) -> Callable[[Results], str]:
    """Return the cell of a fit and a prediction by naive Bayes."""

    def cell(results: Results) -> str:
        fit, predict = (results.times("naive_bayes", f"{task}: {call}", row) for call in ("fit", "predict"))
        return f"{fit} and {predict} {peer}"

    return cell


def classifiers(results: Results) -> str:
    """Return the log loss and the accuracy of the classifiers on the small tables."""
    names = {
        "AutoClassifier": "`AutoClassifier`",
        "AutoClassifier(single=True)": "one model",
        "logistic regression": "logistic regression",
        "gradient boosting": "gradient boosting",
    }
    cells = []
    for name, shown in names.items():
        log_loss, accuracy = (
            results.figure("tables", "37 tables", name, metric) for metric in ("log loss", "accuracy")
        )
        cells.append(f"{shown} {log_loss:.3f}, {accuracy:.3f}")
    return "; ".join(cells)


def spam(results: Results) -> str:
    """Return the log loss and one minus the AUC of the spam filter and of bogofilter."""
    case = "SpamAssassin, headers in: 4,150 ham, 1,896 spam, halves, 5 seeds"
    ours, peer = (
        [results.figure("spam", case, name, column) for column in ("log loss", "AUC")]
        for name in ("tally spam", "bogofilter")
    )
    speed = results.times("spam", "6,046 mails in files, 33 MB, 2 cores", "learn in bulk", "ratio")
    return f"{ours[0]:.3g}, {ours[1]:.3g} %; bogofilter {peer[0]:.3g}, {peer[1]:.3g} %; learns at {speed} its speed"


def discriminants(results: Results) -> str:
    """Return the speed of fits of tied and full covariances."""
    tied, full = (
        results.times("discriminant", f"500,000 × 100 float64, 5 classes, {name}: fit", f"tallybayes, {name}")
        for name in ("tied", "full")
    )
    return f"{tied} LDA (svd), {full} QDA"


def structures(results: Results) -> str:
    """Return the speed of the structure search and the distances to the true network."""
    name = "alarm, 37 nodes, 46 edges, 20,000 rows, bdeu"
    rows = {cells[0]: cells for cells in results.tables["structure"][name][1:]}
    heads = results.tables["structure"][name][0]
    ours, peer = (rows[row][heads.index("distance")] for row in ("tallybayes", "pgmpy HillClimbSearch"))
    return f"{results.times('structure', name, 'tallybayes')} pgmpy; distance {ours}, pgmpy {peer}"


SUMMARY_ROWS: tuple[tuple[str, str, Callable[[Results], str]], ...] = (
    (
        "naive Bayes of 2,000,000 × 30 codes: fit, predict",
        "naive_bayes",
        naive_bayes("2,000,000 × 30 codes, 5 classes", "tallybayes, uint8", "`CategoricalNB`"),
    ),
    (
        "naive Bayes of 200,000 × 784 binary columns: fit, predict",
        "naive_bayes",
        naive_bayes("200,000 × 784 binary, 10 classes", "tallybayes, uint8", "`BernoulliNB`"),
    ),
    (
        "naive Bayes of 2,000,000 × 30 floats (MAP): fit, predict",
        "naive_bayes",
        naive_bayes("2,000,000 × 30 float64, 5 classes", "tallybayes, map", "`GaussianNB`"),
    ),
    (
        "naive Bayes of sparse counts, 200,000 × 100,000: fit, predict",
        "naive_bayes",
        naive_bayes("200,000 × 100,000 sparse counts, 102 a row, 20 classes", "tallybayes", "`MultinomialNB`"),
    ),
    (
        "naive Bayes, prediction of one row of 30 floats",
        "naive_bayes",
        lambda results: (
            results.times("naive_bayes", "One row of 30 float64, predict", "tallybayes, 100 times") + " `GaussianNB`"
        ),
    ),
    (
        "discriminants of 500,000 × 100: fit, tied and full covariances",
        "discriminant",
        discriminants,
    ),
    (
        "HMM, 5 states, 1,000 sequences of 1,000 steps: log-likelihood, Viterbi, one Baum–Welch iteration",
        "hidden_markov",
        lambda results: (
            ", ".join(
                results.times("hidden_markov", f"5 states, 1,000 × 1,000 categorical: {task}", "tallybayes")
                for task in ("log-likelihood", "Viterbi", "one Baum–Welch iteration")
            )
            + " hmmlearn"
        ),
    ),
    (
        "HMM, 500 states, 40 sequences of 200 steps: log-likelihood, expected counts",
        "hidden_markov",
        lambda results: (
            ", ".join(
                results.times("hidden_markov", f"500 states, 40 × 200: {task}", "tallybayes")
                for task in ("log-likelihood", "expected counts")
            )
            + " hmmlearn"
        ),
    ),
    (
        "network parameters of ALARM from 1,000,000 rows",
        "network",
        lambda results: (
            f"{results.times('network', 'Tables of ALARM from 1,000,000 rows', 'tallybayes, uint8 columns')} pyAgrum, "
            f"{results.times('network', 'Tables of ALARM from 1,000,000 rows (2)', 'tallybayes, uint8 columns')} pgmpy"
        ),
    ),
    (
        "EM in a network: 5 iterations, 5,000 rows of INSURANCE, 10 % missing",
        "network",
        lambda results: (
            results.times("network", "5 iterations of EM, 5,000 rows of INSURANCE, 10 % missing", "tallybayes")
            + " pyAgrum (rough)"
        ),
    ),
    ("structure of ALARM from 20,000 rows, BDeu", "structure", structures),
    ("classifiers with their defaults on 37 tables: mean log loss, accuracy", "tables", classifiers),
    (
        "categorical columns in Parquet, 20,000,000 × 10; in CSV",
        "sources",
        lambda results: (
            f"{results.times('sources', 'parquet, 20,000,000 × 10, 109 MB', 'fit', '× DuckDB')} DuckDB's best SQL; "
            f"{results.times('sources', 'csv, 20,000,000 × 10, 440 MB', 'fit', '× DuckDB')}"
        ),
    ),
    (
        "100,000 strings of 150 words: fit, predict",
        "text",
        lambda results: (
            f"{results.times('text', 'fit of 100,000 texts, 69 MB', 'Text(), Arrow')} and "
            f"{results.times('text', 'predict of the same', 'Text(), Arrow')} `CountVectorizer` + `MultinomialNB`"
        ),
    ),
    ("spam filter on SpamAssassin's messages: log loss, 1 − AUC", "spam", spam),
)


def summary(results: Results) -> str:
    """Return the summary table."""
    lines = [f"| {task} | {cell(results)} | [{page}](results/{page}.md) |" for task, page, cell in SUMMARY_ROWS]
    return "\n".join(["", "| task | result | tables |", "|---|---|---|", *lines, "", ""])


def write_summary() -> None:
    """Write the summary table into RESULTS.md."""
    table = summary(Results(FOLDER / "results"))
    SUMMARY.write_text(ROWS.sub(lambda _: table, SUMMARY.read_text(encoding="utf-8")), encoding="utf-8")


def output_of(name: str, arguments: list[str]) -> str:
    """Run a benchmark; return what it prints."""
    command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return "\n" + re.sub(r"\n{3,}", "\n\n", printed).strip() + "\n\n"


def main(wanted: list[str]) -> int:
    failed = []
    pages = [] if wanted == ["--summary"] else sorted((FOLDER / "results").glob("*.md"))
    for page in pages:
        for mark, name, arguments, before in OUTPUT.findall(page.read_text(encoding="utf-8")):
            if wanted and not any(f"{name} {arguments}".startswith(one) for one in wanted):
                continue
            start = time.perf_counter()
            try:
                now = output_of(name, arguments.split())
            except subprocess.CalledProcessError:
                failed.append(f"{name} {arguments}")
            else:
                text = page.read_text(encoding="utf-8")
                page.write_text(text.replace(mark + before, mark + now), encoding="utf-8")
            print(f"{name} {arguments}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    write_summary()
    for one in failed:
        print(f"{one} failed; its figures are those of an earlier run", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
