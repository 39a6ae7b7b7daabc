"""`tally merge`: merge models fitted on separate data."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import File, answer_json, print_result, rows
from tallybayes.apps.cli.model_files import load, save
from tallybayes.messages import with_article


def merge(
    *models: File,
    out: Annotated[File, Parameter(name=["--out", "-o"])],
    force: bool = False,
    json: bool = False,
) -> None:
    """Merge models fitted on separate data.

    The result equals a fit to all their rows. The models must have the same
    kind, parameters and model choices: 'tally fit --like A.tally' fits such
    a model.

      tally merge monday.tally tuesday.tally -o both.tally
      tally merge hospital-*.tally -o all.tally

    Parameters
    ----------
    models
        Two or more files written by `tally fit`.
    out
        The file to write.
    force
        Replace an existing file.
    json
        Write the numbers of rows as JSON.
    """
    import tallybayes as tb

    if len(models) < 2:
        raise UsageError(f"{len(models)} models to merge; expected at least two, and -o.")
    loaded = [load(path, keep_stream=True) for path in models]
    model_class = type(loaded[0])
    for path, model in zip(models, loaded, strict=True):
        if isinstance(model, tb.Window):
            raise CommandError(
                f"{path} is a window, which cannot be merged; expected models.\n"
                "    'tally update' adds the rows of several streams to one window."
            )
    for path, model in zip(models, loaded, strict=True):
        if type(model) is not model_class:
            raise CommandError(
                f"{models[0]} is {with_article(model_class.__name__)} and {path} "
                f"{with_article(type(model).__name__)}; expected models of one kind."
            )
    total: Any = loaded[0]
    for model in loaded[1:]:
        total = total + model
    save(total, out, force=force)
    counts = dict(zip(models, (model.n_rows_ for model in loaded), strict=True))
    if json:
        answer_json({"file": out, "model": model_class.__name__, "rows": total.n_rows_, "rows_of": counts})
        return
    width = max(map(len, (*models, out)))
    for path, n in {**counts, out: total.n_rows_}.items():
        print_result(f"{path:<{width}}  {rows(n):>12} rows")
