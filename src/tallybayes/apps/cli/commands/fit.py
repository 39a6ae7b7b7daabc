"""`tally fit`: fit a model to a table and write it to a file."""

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
_MOST_CLASSES = 50  # maximum number of classes of a numeric target
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
    """Fit a model to a table and write it to a file.

    Without --model, naive Bayes, tree-augmented and one-dependence classifiers
    and discriminants are compared by cross-validation and stacked. The
    leaderboard is printed.

      tally fit penguins.csv --target species
      tally fit visits.parquet -t bought -m naive-bayes --columns zip=categorical
      tally fit sqlite:shop.db --table visits -t bought -m naive-bayes
      tally fit penguins.csv -t body_mass_g -m regression
      tally fit days.csv -m network --structure 'rain, sprinkler -> wet'
      tally fit words.csv -m hidden-markov -t tag --sequence sentence --order time
      zcat big.csv.gz | tally fit - -t label -m naive-bayes -o big.tally

    A FAMILY is categorical, text, binary, count, gaussian, log-normal or
    tied-gaussian; auto selects it by the type of the column, suggest by log
    evidence, and ignore drops the column. The suffix +missing (gaussian+missing)
    models missing values as informative. The name ... means all other columns,
    which are auto by default.

    Parameters
    ----------
    data
        A file, a pattern in quotes, - or the address of a database.
    target
        The column of the classes, of the states of hidden-markov, or of the numbers of regression. A network or a
        mixture needs none.
    model
        The kind of model.
    out
        The file to write; by default DATA-MODEL.tally in this folder. An existing file is replaced only with --force.
    force
        Replace an existing file.
    columns
        Families of columns, as NAME=FAMILY; see above.
    estimate
        The estimate of the parameters from the counts; by default bayes.
    prior
        Pseudo-counts of every level (1 is add-one), empirical, k2, bdeu:N, dirichlet:N or beta:A,B.
    class_prior
        The class prior: uniform, or the class frequencies.
    calibration
        Calibrate the probabilities on held-out rows.
    unlabeled
        Use rows without a class by EM, or skip them. By default they are an error.
    weight
        The column with the sample weights.
    covariance
        Covariance of a discriminant; by default full.
    structure
        Edges of a network: 'a->b' 'b, c -> d', a .bif file with them, or tree to learn a tree from the data.
    sequence
        The column with the sequence identifier, for hidden-markov.
    order
        The column with the time order within a sequence, for hidden-markov.
    states
        The number of states of hidden-markov without --target.
    components
        The number of components of a mixture; by default 2.
    degree
        The degree of the polynomial of a regression; by default 1.
    single
        For --model auto: select the best candidate instead of stacking.
    like_model
        A model whose kind, parameters and model choices are used, so that both can be merged.
    seed
        The random seed of the folds and of the initialization of EM.
    json
        Write the description of the model as JSON.
    reading
        Options for reading DATA.
    """
    import tallybayes as tb

    families, ignored = read_families(columns)
    options: dict[str, Any] = {
        "columns": families,
        "estimate": estimate,
        "prior": read_prior(prior, estimate or "bayes"),
    }
    options |= {"class_prior": class_prior, "calibration": calibration, "unlabeled": unlabeled, "single": single}
    options |= {"covariance": None if covariance is None else covariance.replace("-", "_"), "n_states": states}
    options |= {"n_components": components, "degree": degree}
    options |= {"random_state": seed}
    with OpenResources() as resources:
        required = (target, weight, sequence, order)
        source = resources.source(data, reading, ignored, needed=required)
        if like_model is not None:
            if any(value not in (None, {}) for value in options.values()) or model != "auto" or structure:
                raise UsageError("--like sets the kind and the parameters of the model; pass no other model option.")
            other = load(like_model)
            if isinstance(other, tb.Mixture):
                raise UsageError(f"--like requires a model whose tallies can be merged; {like_model} is a Mixture.")
            unfitted = other.without_rows()
            target = target or target_of(other)
            kind = next(name for name, class_name in MODELS.items() if type(unfitted) is getattr(tb, class_name))
        else:
            unfitted = _make_model(model, options, structure, source, target)
            kind = model
            if target is not None and model not in ("regression", "network", "hidden-markov"):
                _check_classes(source, target)
        path = out or _default_path(data, reading.table, kind)
        check_free(path, force)  # before the fit
        fitted = _fit_model(unfitted, kind, source, target, weight, sequence, order, structure)
    save(fitted, path, force=force)  # before printing: the output pipe may be closed
    report = getattr(fitted, "leaderboard_", None)
    if json:
        document = model_to_json(fitted) | {"file": path}
        answer_json(document | ({} if report is None else {"report": _leaderboard_to_json(report)}))
    else:
        show_report(report) if report is not None else show_summary(fitted.summary())


def _make_model(
    model: str, options: dict[str, Any], structure: tuple[str, ...], source: Any, target: str | None
) -> Any:
    """Return the unfitted model. Raise UsageError for options that it does not have, or that are missing."""
    if structure and model != "network":
        raise UsageError("--structure applies to --model network.")
    if model == "network":
        if not structure:
            raise UsageError(
                f"missing option --structure: edges such as 'a->b', or tree.\n    Columns: {_column_names(source)}."
            )
        parents: Any = {} if structure == ("tree",) else read_structure(structure)
        return make(model, options, {"parents": parents})
    if model == "mixture":
        if target is not None:
            raise UsageError(
                f"--target is {target!r}; a mixture is fitted without a target.\n"
                f"    Omit --target; --columns {target}=ignore drops the column."
            )
        return make(model, options)
    if target is None and (model != "hidden-markov" or options["n_states"] is None):
        raise UsageError(f"missing option --target: the column to predict; expected one of {_column_names(source)}.")
    return make(model, options)


def _check_classes(source: Any, target: str) -> None:
    """Raise UsageError if the target is continuous: every value would be a class."""
    import pyarrow.compute as pc

    column = source.first_batch()[target]
    if not str(column.type).startswith(("int", "uint", "float", "double", "halffloat", "decimal")):
        return
    known = pc.drop_null(pc.cast(column, "float64"))
    n = pc.count_distinct(known).as_py()
    if n > _MOST_CLASSES or not pc.all(pc.equal(pc.floor(known), known)).as_py():
        raise UsageError(
            f"column {target!r} is continuous ({n} different numbers in {len(known):,} rows); expected classes.\n"
            f"    Pass --model regression to predict the number, or --types {target}=string to use its values"
            " as classes."
        )


def _fit_model(
    unfitted: Any,
    model: str,
    source: Any,
    target: str | None,
    weight: str | None,
    sequence: str | None,
    order: str | None,
    structure: tuple[str, ...],
) -> Any:
    """Fit the model to the rows and return it."""
    import tallybayes as tb

    if model != "hidden-markov" and (sequence or order):
        raise UsageError("--sequence and --order apply to --model hidden-markov.")
    fit_rows = (
        unfitted.partial_fit if hasattr(unfitted, "n_rows_") else unfitted.fit
    )  # a model of --like has n_rows_ of 0
    if model == "hidden-markov":
        if sequence is None:
            raise UsageError(
                "missing option --sequence COL: the column with the sequence identifier "
                "(and --order COL for the time order)."
            )
        if weight is not None:
            raise UsageError("--weight applies to rows; a hidden Markov model is fitted to sequences.")
        return fit_rows(source, target, sequence=sequence, order=order)
    if model == "network" and structure == ("tree",):
        parameters = {name: value for name, value in unfitted.get_params(deep=False).items() if name != "parents"}
        defaults = tb.BayesianNetwork({}).get_params(deep=False)
        passed = {name: value for name, value in parameters.items() if value != defaults[name]}
        return tb.learn_tree(source, target, sample_weight=weight, **passed)
    if model in ("network", "mixture"):
        return fit_rows(source, sample_weight=weight)
    return fit_rows(source, target, **({} if weight is None else {"sample_weight": weight}))


def _default_path(data: str, table: str | None, model: str) -> str:
    """Return the default file name of a model: the name of the data and the kind of the model."""
    if table and is_database(data):
        stem = table
    elif data == STANDARD_INPUT:
        stem = "standard-input"
    else:
        stem = os.path.basename(redacted(data).rstrip("/").partition("?")[0]).split(".")[0]
    stem = re.sub(r"[^\w-]+", "-", stem.rpartition(":")[2]).strip("-") or "data"
    return f"{stem}-{model}.tally"


def _column_names(source: Any) -> str:
    """Return the names of the columns, at most twelve."""
    names = source.schema.names
    return ", ".join(map(repr, names[:12])) + (f", … {len(names) - 12} more" if len(names) > 12 else "")


def _leaderboard_to_json(report: Any) -> dict[str, Any]:
    """Return the leaderboard as a JSON document."""
    held_out = {"log_loss": [report.loss, report.low, report.high], "accuracy": report.accuracy}
    data = {"rows": report.n_rows, "folds": report.n_folds, "seconds": report.seconds}
    columns = {str(name): str(family) for name, family in report.columns.items()}
    return {
        "tried": list(report.tried),
        "held_out": held_out,
        **data,
        "columns": columns,
        "dropped_columns": report.dropped_columns,
    }
