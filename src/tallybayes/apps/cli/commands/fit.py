"""`tally fit`: fit a model to a table and write it to a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import STANDARD_INPUT, File, answer_json
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read, is_database
from tallybayes.apps.cli.json_output import model_to_json
from tallybayes.apps.cli.model_files import check_free, load, save, target_of
from tallybayes.apps.cli.model_options import MODELS, make, passed_options, read_families, read_prior, read_structure
from tallybayes.apps.cli.rich_tables import show_result, show_summary
from tallybayes.apps.cli.row_columns import ROW_COLUMNS, RowColumns
from tallybayes.messages import redacted

if TYPE_CHECKING:
    import tallybayes as tb
    from tallybayes.models.base import Model
    from tallybayes.models.ensemble.leaderboard import Leaderboard

ModelName = Literal[
    "auto",
    "naive-bayes",
    "one-dependence",
    "tree-augmented",
    "discriminant",
    "forest",
    "boosting",
    "nearest-mean",
    "regression",
    "mixture",
    "network",
    "hidden-markov",
]
_MOST_CLASSES = 50  # maximum number of classes of a numeric target
Estimate = Literal["bayes", "mle", "map", "unbiased"]
Covariance = Literal["auto", "full", "tied", "diagonal", "tied-diagonal", "spherical", "tied-spherical"]


def fit(
    data: File,
    /,
    *,
    roles: RowColumns = ROW_COLUMNS,
    model: Annotated[ModelName, Parameter(name=["--model", "-m"], show_default=True)] = "auto",
    out: Annotated[File | None, Parameter(name=["--out", "-o"])] = None,
    force: bool = False,
    columns: tuple[str, ...] = (),
    estimate: Estimate | None = None,
    prior: str | None = None,
    class_prior: Literal["uniform", "frequency"] | None = None,
    calibration: Literal["temperature", "isotonic", "auto"] | None = None,
    unlabeled: Literal["em", "skip"] | None = None,
    covariance: Covariance | None = None,
    structure: tuple[str, ...] = (),
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

    Without --model, naive Bayes, tree-augmented and one-dependence classifiers,
    discriminants and trees are compared by cross-validation and pooled. The
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
    roles
        Columns of DATA by role.
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
    covariance
        Covariance of a discriminant; by default auto: full or tied, by leave-one-out.
    structure
        Edges of a network: 'a->b' 'b, c -> d', a .bif file with them, or tree to learn a tree from the data.
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
        "class_prior": class_prior,
        "calibration": calibration,
        "unlabeled": unlabeled,
        "single": single,
        "covariance": covariance and covariance.replace("-", "_"),
        "n_states": states,
        "n_components": components,
        "degree": degree,
        "random_state": seed,
    }
    learns_tree = model == "network" and structure == ("tree",)
    with OpenResources() as resources:
        source = resources.source(data, reading, ignored, needed=roles.names)
        if like_model is None:
            unfitted = _make_model(model, options, structure, source, roles.target)
        else:
            if any(value not in (None, {}) for value in options.values()) or model != "auto" or structure:
                raise UsageError("--like sets the kind and the parameters of the model; pass no other model option.")
            other = load(like_model)
            if isinstance(other, tb.Mixture):
                raise UsageError(
                    f"--like requires a model whose tallies can be merged; {like_model} is a Mixture.\n"
                    "    Pass --model mixture instead."
                )
            unfitted = other.without_rows()
            roles = replace(roles, target=roles.target or target_of(other))
        kind = next(name for name, class_name in MODELS.items() if type(unfitted) is getattr(tb, class_name))
        path = out or _default_path(data, reading.table, kind)
        check_free(path, force)  # before the fit
        if learns_tree:
            roles.check_no_sequence(unfitted)
            passed = passed_options(model, options)
            fitted: Any = tb.learn_tree(source, roles.target, sample_weight=roles.weight, **passed)
        else:
            fitted = roles.call(unfitted, "fit" if like_model is None else "partial_fit", source)
    save(fitted, path, force=force)  # before printing: the output pipe may be closed
    report = fitted.leaderboard_ if isinstance(fitted, tb.AutoClassifier) else None
    if json:
        leaderboard = {} if report is None else {"report": _leaderboard_to_json(report)}
        answer_json({**model_to_json(fitted), "file": path, **leaderboard})
    elif report is not None:
        show_result(report)
    else:
        show_summary(fitted.summary())


def _make_model(
    model: str, options: Mapping[str, Any], structure: tuple[str, ...], source: tb.Source, target: str | None
) -> Model:
    """Return the unfitted model. Raise UsageError for options that it does not have, or that are missing."""
    if model == "network":
        if not structure:
            raise UsageError(
                f"missing option --structure: edges such as 'a->b', or tree.\n    Columns: {_column_names(source)}."
            )
        return make(model, options, parents={} if structure == ("tree",) else read_structure(structure))
    if structure:
        raise UsageError("--structure applies to networks.\n    Add --model network, or omit --structure.")
    if model == "mixture":
        if target is not None:
            raise UsageError(
                f"--target is {target!r}; a mixture is fitted without a target.\n"
                f"    Omit --target; --columns {target}=ignore drops the column."
            )
    elif target is None:
        if model != "hidden-markov" or options["n_states"] is None:
            names = _column_names(source)
            raise UsageError(f"missing option --target: the column to predict; expected one of {names}.")
    elif model not in ("regression", "hidden-markov"):
        _check_classes(source, target)
    return make(model, options)


def _check_classes(source: tb.Source, target: str) -> None:
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


def _column_names(source: tb.Source) -> str:
    """Return the names of the columns, at most twelve."""
    names = source.schema.names
    return ", ".join(map(repr, names[:12])) + (f", … {len(names) - 12} more" if len(names) > 12 else "")


def _leaderboard_to_json(report: Leaderboard) -> dict[str, Any]:
    """Return the leaderboard as a JSON document."""
    return {
        "tried": list(report.tried),
        "held_out": {"log_loss": [report.loss, report.low, report.high], "accuracy": report.accuracy},
        "rows": report.n_rows,
        "folds": report.n_folds,
        "seconds": report.seconds,
        "columns": {str(name): str(family) for name, family in report.columns.items()},
        "dropped_columns": report.dropped_columns,
    }
