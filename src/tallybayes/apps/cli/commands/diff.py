"""`tally diff`: the differences between two models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.console import File, answer_json
from tallybayes.apps.cli.model_files import load
from tallybayes.apps.cli.rich_tables import show_result
from tallybayes.messages import with_article

if TYPE_CHECKING:
    from tallybayes.results.difference import Difference


def diff(before: File, after: File, /, *, json: bool = False) -> None:
    """Show the differences between two models, in rows and in bits.

    The bits of a column are the Kullback-Leibler divergence of its new from its
    old distribution, averaged over the classes; the class with the largest one
    is named. Added and removed classes and levels are listed.

      tally diff june.tally july.tally
      tally diff june.tally july.tally --json

    Parameters
    ----------
    before
        A file that `tally fit` wrote.
    after
        Another file, with a model of the same kind.
    json
        Write the differences as JSON.
    """
    import tallybayes as tb

    first = load(before)
    second = load(after)
    if type(first) is not type(second):
        kinds = (with_article(type(model).__name__) for model in (first, second))
        raise CommandError(
            f"{before} is {next(kinds)} and {after} {next(kinds)}; expected two models of one kind.\n"
            "    'tally evaluate' computes metrics for models of different kinds."
        )
    difference = tb.difference(first, second)
    if json:
        answer_json(_as_json(difference))
    else:
        show_result(difference)


def _as_json(difference: Difference) -> dict[str, Any]:
    """Return the differences as a JSON document."""
    rows = {"before": difference.rows[0], "after": difference.rows[1]}
    classes = [{"class": label, "before": old, "after": new} for label, (old, new) in difference.classes.items()]
    head = {"model": difference.kind, "note": difference.note or None, "rows": rows, "classes": classes}
    only = {"only_before": difference.only_before, "only_after": difference.only_after}
    return {**head, "class_bits": difference.class_bits, "columns": difference.columns, **only}
