"""`tally diff`: what changed from one model to another."""

from __future__ import annotations

from typing import Any

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.console import File, answer_json
from tallybayes.apps.cli.model_files import load
from tallybayes.apps.cli.rich_tables import show_difference


def diff(before: File, after: File, /, *, json: bool = False) -> None:
    """Show what changed from one model to another, in rows and in bits.

    The bits of a column tell how far its distribution moved (the divergence of
    the new one from the old one), on the mean over the classes; where it moved
    most is named. Classes and levels that came or went are listed.

      tally diff june.tally july.tally
      tally diff june.tally july.tally --json

    Parameters
    ----------
    before
        A file that `tally fit` wrote.
    after
        Another one, of the same kind.
    json
        Write it as JSON.
    """
    import tallybayes as tb

    first, second = load(before), load(after)
    if type(first) is not type(second):
        kinds = (type(model).__name__ for model in (first, second))
        raise CommandError(
            f"{before} is a {next(kinds)} and {after} a {next(kinds)}; expected two models of one kind.\n"
            "    'tally evaluate' compares models of different kinds by what they predict."
        )
    found = tb.difference(first, second)
    if json:
        answer_json(_as_json(found))
    else:
        show_difference(found)


def _as_json(found: Any) -> dict[str, Any]:
    rows = {"before": found.rows[0], "after": found.rows[1]}
    classes = [{"class": label, "before": old, "after": new} for label, (old, new) in found.classes.items()]
    head = {"model": found.kind, "note": found.note or None, "rows": rows, "classes": classes}
    only = {"only_before": found.only_before, "only_after": found.only_after}
    return {**head, "class_bits": found.class_bits, "columns": found.columns, **only}
