"""The commands there are: each is a file, imported when it is asked for, so that help comes at once."""

from __future__ import annotations

from collections.abc import Sequence

from cyclopts import App, Parameter

import tallybayes

_HELP = """\
Learn from tables by counting; ask, change, merge and compare what was learned.

DATA is a file (.csv, .tsv, .jsonl, .parquet, .arrow; text may be packed, .gz),
a pattern ('2026-*.csv', in quotes), - for standard input (CSV or JSON lines),
or a database with --table or --query: duckdb:FILE, sqlite:FILE, postgresql://…

  tally fit penguins.csv --target species
  tally predict penguins-choose.tally new.csv --proba
  tally evaluate penguins-choose.tally test.csv
  tally update penguins-choose.tally monday.csv

Answers go to standard output, all else to standard error. Exit codes: 0 done,
1 refused (the data, the model or a file), 2 the command line is wrong,
70 a fault of ours, 130 interrupted, 141 who reads the output has gone.\
"""

# In the order of the help; each is a function of a file of its name, imported when it is asked for.
COMMANDS = {
    "fit": "Learn a model from a table, and write it to a file.",
    "predict": "Say what a model predicts of every row.",
    "evaluate": "Measure a model's answers on rows whose answers are known.",
    "explain": "Say why a model predicts what it does, of some rows.",
    "show": "Show what a model has counted and learned.",
    "diff": "Show what changed from one model to another, in rows and in bits.",
    "update": "Count more rows into a model.",
    "forget": "Take rows out of a model again, as if never seen.",
    "merge": "Add up models that were learned apart.",
    "sample": "Draw rows from a model.",
    "export": "Write a model for where the rows are: as SQL, ONNX or BIF.",
    "report": "Write a page about a classifier: what it counted, how good it is, and why.",
    "query": "Ask a Bayesian network what follows from what is known.",
    "spam": "A spam filter that learns from mail, judges it, says why, and forgets again.",
    "demo": "Show the main job on a made-up table.",
}


def make_app(asked: str | None = None, words: Sequence[str] = ()) -> App:
    """The command as cyclopts has it.

    Parameters
    ----------
    asked : str, optional
        The command whose own help is wanted, in full; of all others a line is told, and nothing is imported.
    words : sequence of str
        All that was typed: where a command has commands of its own, the one that is meant is in it.
    """
    app = App(
        name="tally",
        help=_HELP,
        help_format="plaintext",
        version=tallybayes.__version__,
        default_parameter=Parameter(negative=(), show_default=False, show_env_var=False, consume_multiple=True),
    )
    for place, (name, line) in enumerate(COMMANDS.items()):
        if name == "spam":
            from tallybayes.apps.command.commands.spam import COMMANDS as OF_SPAM
            from tallybayes.apps.command.commands.spam import make_spam

            inner = next((word for word in words if word in OF_SPAM), None)
            app.command(make_spam(inner, default_parameter=app.default_parameter, sort_key=place))
            continue
        told = {} if name == asked else {"help": line}
        app.command(f"tallybayes.apps.command.commands.{name}:{name}", name=name, sort_key=place, **told)
    app["--help"].group = app["--version"].group = "Options"
    app.register_install_completion_command(help="Let the shell complete commands and options.", group="Options")
    return app
