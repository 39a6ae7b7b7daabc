"""`tally fit`: learn a model from a table, and write it to a file."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import STANDARD_INPUT, File, answer_json
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read, is_database
from tallybayes.apps.cli.json_output import model_to_json
from tallybayes.apps.cli.model_files import check_free, load, save, target_of
from tallybayes.apps.cli.model_options import MODELS, make, read_families, read_prior, read_structure
from tallybayes.apps.cli.rich_tables import show_report, show_summary
from tallybayes.messages import redacted

Model = Literal[
    "auto",
    "naive-bayes",
    "one-dependence",
    "tree-augmented",
    "discriminant",
    "nearest-mean",
    "regression",
    "mixture",
    "network",
    "hidden-markov",
]
_MOST_CLASSES = 50  # that a target of whole numbers may have
Estimate = Literal["bayes", "mle", "map", "unbiased"]
Covariance = Literal["full", "tied", "diagonal", "tied-diagonal", "spherical", "tied-spherical"]


def fit(
    data: File,
    /,
    *,
    target: Annotated[str | None, Parameter(name=["--target", "-t"])] = None,
    model: Annotated[Model, Parameter(name=["--model", "-m"], show_default=True)] = "auto",
    out: Annotated[File | None, Parameter(name=["--out", "-o"])] = None,
    force: bool = False,
    columns: tuple[str, ...] = (),
    estimate: Estimate | None = None,
    prior: str | None = None,
    class_prior: Literal["uniform", "frequency"] | None = None,
    calibration: Literal["temperature", "isotonic", "auto"] | None = None,
    unlabeled: Literal["em", "skip"] | None = None,
    weight: str | None = None,
    covariance: Covariance | None = None,
    structure: tuple[str, ...] = (),
    sequence: str | None = None,
    order: str | None = None,
    states: int | None = None,
    components: int | None = None,
    degree: int | None = None,
    single: bool | None = None,
    like_model: Annotated[File | None, Parameter(name="--like")] = None,
    seed: int | None = None,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Learn a model from a table, and write it to a file.

    Without --model, naive Bayes, trees, one-dependence classifiers and
    discriminants are tried on held-out rows, and mixed by how they did; the
    report says what was found.

      tally fit penguins.csv --target species
      tally fit visits.parquet -t bought -m naive-bayes --columns zip=label
      tally fit sqlite:shop.db --table visits -t bought -m naive-bayes
      tally fit penguins.csv -t body_mass_g -m regression
      tally fit days.csv -m network --structure 'rain, sprinkler -> wet'
      tally fit words.csv -m hidden-markov -t tag --sequence sentence --order place
      zcat big.csv.gz | tally fit - -t label -m naive-bayes -o big.tally

    A FAMILY is label, text, yes-no, count, gaussian, log-normal or tied-gaussian;
    auto goes by the column's type, suggest by evidence, ignore leaves it out.
    With +missing (gaussian+missing) absence tells something, too. The name ...
    stands for all columns that are not named, which are auto.

    Parameters
    ----------
    data
        A file, a pattern in quotes, - or the address of a database.
    target
        The column of the classes; of states, for hidden-markov; of numbers, for regression. Of a network and a
        mixture, none is needed.
    model
        What is learned.
    out
        The file to write; by default DATA-MODEL.tally, here. One that is there is never replaced without --force.
    force
        Replace the file that is there.
    columns
        What columns are, as NAME=FAMILY; others are auto. See above.
    estimate
        How parameters follow from counts; bayes unless said.
    prior
        A number added to every level's count (1 is add-one), empirical, k2, bdeu:N, dirichlet:N or beta:A,B.
    class_prior
        The classes' probabilities before a row is seen: all the same, or their share of the rows.
    calibration
        Mend the probabilities by rows left out.
    unlabeled
        What becomes of rows without a class: used by EM, or left out. Otherwise they are refused.
    weight
        The column that says how often a row counts.
    covariance
        Of a discriminant: full unless said.
    structure
        Of a network: arrows, 'a->b' 'b, c -> d'; a .bif file that has them; or tree, to learn a tree.
    sequence
        Of hidden-markov: the column that says which sequence a step belongs to.
    order
        Of hidden-markov: the column that says where in it.
    states
        Of hidden-markov without --target: how many states there are.
    components
        Of a mixture: how many there are; 2 unless said.
    degree
        Of a regression: the highest power of every number; 1 unless said.
    single
        For --model auto: use the best candidate alone instead of stacking.
    like_model
        A model whose kind, settings and choices are taken, so that both can be merged.
    seed
        For what is random: folds, and where EM starts.
    json
        Write what was learned as JSON.
    reading
        How DATA is read.
    """
    import tallybayes as tb

    families, ignored = read_families(columns)
    settings: dict[str, Any] = {
        "columns": families,
        "estimate": estimate,
        "prior": read_prior(prior, estimate or "bayes"),
    }
    settings |= {"class_prior": class_prior, "calibration": calibration, "unlabeled": unlabeled, "single": single}
    settings |= {"covariance": None if covariance is None else covariance.replace("-", "_"), "n_states": states}
    settings |= {"n_components": components, "degree": degree}
    settings |= {"random_state": seed}
    with OpenResources() as places:
        needed = (target, weight, sequence, order)
        source = places.source(data, reading, ignored, needed=needed)
        if like_model is not None:
            if any(value not in (None, {}) for value in settings.values()) or model != "auto" or structure:
                raise UsageError("--like takes the kind and the settings of another model; expected no others.")
            other = load(like_model)
            if isinstance(other, tb.Mixture):
                raise UsageError(f"--like takes a model whose rows add up; {like_model} is a Mixture.")
            fresh, target = other.without_rows(), target or target_of(other)
            kind = next(word for word, name in MODELS.items() if type(fresh) is getattr(tb, name))
        else:
            fresh, kind = _made(model, settings, structure, source, target), model
            if target is not None and model not in ("regression", "network", "hidden-markov"):
                _check_classes(source, target)
        path = out or _named(data, reading.table, kind)
        check_free(path, force)  # before the work, not after it
        fitted = _fitted(fresh, kind, source, target, weight, sequence, order, structure)
    save(fitted, path, force=force)  # before anything is printed: its reader may be gone
    report = getattr(fitted, "leaderboard_", None)
    if json:
        told = model_to_json(fitted) | {"file": path}
        answer_json(told | ({} if report is None else {"report": _told(report)}))
    else:
        show_report(report) if report is not None else show_summary(fitted.summary())


def _made(model: str, settings: dict[str, Any], structure: tuple[str, ...], source: Any, target: str | None) -> Any:
    """The model, not fitted; settings that it lacks are refused, and what it needs is asked for."""
    if structure and model != "network":
        raise UsageError("--structure is of --model network.")
    if model == "network":
        if not structure:
            raise UsageError(
                "which column depends on which is not said; expected --structure 'a->b' …, or --structure tree.\n"
                f"    The columns are {_listed(source)}."
            )
        parents: Any = {} if structure == ("tree",) else read_structure(structure)
        return make(model, settings, {"parents": parents})
    if model == "mixture":
        if target is not None:
            raise UsageError(
                f"--target is {target!r}; a mixture finds its components without labels.\n"
                f"    Leave it out; --columns {target}=ignore leaves the column out, too."
            )
        return make(model, settings)
    if target is None and (model != "hidden-markov" or settings["n_states"] is None):
        raise UsageError(f"which column is predicted is not said; expected --target, one of {_listed(source)}.")
    return make(model, settings)


def _check_classes(source: Any, target: str) -> None:
    """Reject a target of measured numbers, of which every value would be a class."""
    import pyarrow.compute as pc

    column = source.first_batch()[target]
    if not str(column.type).startswith(("int", "uint", "float", "double", "halffloat", "decimal")):
        return
    known = pc.drop_null(pc.cast(column, "float64"))
    n = pc.count_distinct(known).as_py()
    if n > _MOST_CLASSES or not pc.all(pc.equal(pc.floor(known), known)).as_py():
        raise UsageError(
            f"column {target!r} is continuous ({n} different numbers in {len(known):,} rows); expected classes.\n"
            f"    Predict the number with --model regression, or make classes of its values: --types {target}=string."
        )


def _fitted(
    fresh: Any,
    model: str,
    source: Any,
    target: str | None,
    weight: str | None,
    sequence: str | None,
    order: str | None,
    structure: tuple[str, ...],
) -> Any:
    import tallybayes as tb

    if model != "hidden-markov" and (sequence or order):
        raise UsageError("--sequence and --order are of --model hidden-markov.")
    learn = fresh.partial_fit if hasattr(fresh, "n_rows_") else fresh.fit  # one that is like another has no rows yet
    if model == "hidden-markov":
        if sequence is None:
            raise UsageError("which sequence a step belongs to is not said; expected --sequence COL (and --order COL).")
        if weight is not None:
            raise UsageError("--weight is of rows; hidden-markov learns from sequences.")
        return learn(source, target, sequence=sequence, order=order)
    if model == "network" and structure == ("tree",):
        settings = {name: value for name, value in fresh.get_params(deep=False).items() if name != "parents"}
        defaults = tb.BayesianNetwork({}).get_params(deep=False)
        said = {name: value for name, value in settings.items() if value != defaults[name]}
        return tb.learn_tree(source, target, sample_weight=weight, **said)
    if model in ("network", "mixture"):
        return learn(source, sample_weight=weight)
    return learn(source, target, **({} if weight is None else {"sample_weight": weight}))


def _named(data: str, table: str | None, model: str) -> str:
    """The file that a model is written to where none is named: of the data's name and the model's."""
    if table and is_database(data):
        stem = table
    elif data == STANDARD_INPUT:
        stem = "standard-input"
    else:
        stem = os.path.basename(redacted(data).rstrip("/").partition("?")[0]).split(".")[0]
    stem = re.sub(r"[^\w-]+", "-", stem.rpartition(":")[2]).strip("-") or "data"
    return f"{stem}-{model}.tally"


def _listed(source: Any) -> str:
    names = source.schema.names
    return ", ".join(map(repr, names[:12])) + (f", … {len(names) - 12} more" if len(names) > 12 else "")


def _told(report: Any) -> dict[str, Any]:
    """What was tried, as JSON has it."""
    held_out = {"log_loss": [report.loss, report.low, report.high], "accuracy": report.accuracy}
    counted = {"rows": report.n_rows, "folds": report.n_folds, "seconds": report.seconds}
    columns = {str(name): str(family) for name, family in report.columns.items()}
    return {
        "tried": list(report.tried),
        "held_out": held_out,
        **counted,
        "columns": columns,
        "dropped_columns": report.dropped_columns,
    }
