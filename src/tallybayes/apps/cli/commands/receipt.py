"""`tally receipt`: check that a model has forgotten what a receipt says."""

from __future__ import annotations

import os

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.model_files import load


def receipt(file: File, model: File, /, *, never_saw: File | None = None, json: bool = False) -> int:
    """Check a receipt of 'tally forget' against a model.

    The model must have the very counts that the receipt ends with. With
    --never-saw, they must also be those of a model that was fitted without
    the rows. Exit codes: 0 it verifies, 1 it does not (or a file was refused).

      tally forget penguins.tally withdrawn.csv --receipt withdrawn.json
      tally receipt withdrawn.json penguins.tally
      tally receipt withdrawn.json penguins.tally --never-saw without.tally

    Parameters
    ----------
    file
        What `tally forget --receipt` wrote.
    model
        The model that forgot, as it was right afterwards.
    never_saw
        A model that was fitted on the rows that remain.
    json
        Write it as JSON.
    """
    import tallybayes as tb

    if not os.path.exists(file):
        raise CommandError(f"there is no file {file!r}; expected a receipt.\n    'tally forget --receipt' writes one.")
    found = tb.Receipt.load(file)
    result = tb.verify_receipt(found, load(model), None if never_saw is None else load(never_saw))
    if json:
        answer_json({"ok": result.ok, **result._asdict()})
    else:
        print_result(f"{found!r}\n{result!r}")
    return 0 if result.ok else 1
