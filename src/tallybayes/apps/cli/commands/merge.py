"""`tally merge`: add up models that were learned apart."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import File, answer_json, print_result, rows
from tallybayes.apps.cli.model_files import load, save


def merge(
    *models: File,
    out: Annotated[File, Parameter(name=["--out", "-o"])],
    force: bool = False,
    json: bool = False,
) -> None:
    """Add up models that were learned apart.

    The sum is what a fit of all their rows would have made. They must be of
    one kind, with the same settings and choices: 'tally fit --like A.tally'
    makes such.

      tally merge monday.tally tuesday.tally -o both.tally
      tally merge hospital-*.tally -o all.tally

    Parameters
    ----------
    models
        Two files or more that `tally fit` wrote.
    out
        The file to write.
    force
        Replace the file that is there.
    json
        Write what was added as JSON.
    """
    import tallybayes as tb

    if len(models) < 2:
        raise UsageError(f"there are {len(models)} models to merge; expected two or more, and -o.")
    found = [load(path, whole=True) for path in models]
    kind = type(found[0])
    for path, model in zip(models, found, strict=True):
        if isinstance(model, tb.Window):
            raise CommandError(
                f"{path} is a window, which holds the last rows of one stream; expected models.\n"
                "    'tally update' counts the rows of several streams into one window."
            )
    for path, model in zip(models, found, strict=True):
        if type(model) is not kind:
            raise CommandError(
                f"{models[0]} is a {kind.__name__} and {path} a {type(model).__name__}; expected models of one kind."
            )
    total: Any = found[0]
    for model in found[1:]:
        total = total + model
    save(total, out, force=force)
    counts = dict(zip(models, (model.n_rows_ for model in found), strict=True))
    if json:
        answer_json({"file": out, "model": kind.__name__, "rows": total.n_rows_, "rows_of": counts})
        return
    width = max(map(len, (*models, out)))
    for path, n in {**counts, out: total.n_rows_}.items():
        print_result(f"{path:<{width}}  {rows(n):>12} rows")
