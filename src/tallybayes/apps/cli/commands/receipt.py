"""`tally receipt`: verify that a model has forgotten the rows of a receipt."""

from __future__ import annotations

import os

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.model_files import load


def receipt(file: File, model: File, /, *, retrained: File | None = None, json: bool = False) -> int:
    """Verify a receipt of 'tally forget' against a model.

    The counts of the model must equal the final counts of the receipt. With
    --retrained, they must also equal the counts of a model fitted without
    the rows. Exit codes: 0 verified, 1 not verified, or an error.

      tally forget penguins.tally withdrawn.csv --receipt withdrawn.json
      tally receipt withdrawn.json penguins.tally
      tally receipt withdrawn.json penguins.tally --retrained without.tally

    Parameters
    ----------
    file
        A file of `tally forget --receipt`.
    model
        The model right after `tally forget`.
    retrained
        A model that was fitted to the remaining rows only.
    json
        Write the result as JSON.
    """
    import tallybayes as tb

    if not os.path.exists(file):
        raise CommandError(
            f"file {file!r} does not exist; expected a receipt.\n    'tally forget --receipt' writes one."
        )
    document = tb.Receipt.load(file)
    result = tb.verify_receipt(document, load(model), None if retrained is None else load(retrained))
    if json:
        answer_json({"ok": result.ok, **result._asdict()})
    else:
        print_result(f"{document!r}\n{result!r}")
    return 0 if result.ok else 1
