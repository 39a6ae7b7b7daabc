"""The commands as cyclopts has them: each is a file, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyclopts import App, Parameter

import tallybayes
from tallybayes.apps.cli.help_text import COMMANDS, COMPLETION, HELP


class _Tally(App):
    """The application, whose completion in bash knows folders, and files where an option has several values."""

    def generate_completion(self, **options: Any) -> str:
        """The script of a shell."""
        return super().generate_completion(**options).replace("complete -F ", "complete -o filenames -o default -F ")


def make_app(asked: str | None = None, words: Sequence[str] = ()) -> App:
    """The command as cyclopts has it.

    Parameters
    ----------
    asked : str, optional
        The command whose own help is wanted, in full; of all others a line is told, and nothing is imported.
    words : sequence of str
        All that was typed: where a command has commands of its own, the one that is meant is in it.
    """
    app = _Tally(
        name="tally",
        help=HELP,
        help_format="plaintext",
        version=tallybayes.__version__,
        default_parameter=Parameter(negative=(), show_default=False, show_env_var=False, consume_multiple=True),
    )
    for place, (name, line) in enumerate(COMMANDS.items()):
        if name == "spam":
            from tallybayes.apps.cli.commands.spam import COMMANDS as OF_SPAM
            from tallybayes.apps.cli.commands.spam import make_spam

            inner = next((word for word in words if word in OF_SPAM), None)
            app.command(make_spam(inner, default_parameter=app.default_parameter, sort_key=place))
            continue
        told = {} if name == asked else {"help": line}
        app.command(f"tallybayes.apps.cli.commands.{name}:{name}", name=name, sort_key=place, **told)
    app["--help"].group = app["--version"].group = "Options"
    app.register_install_completion_command(help=COMPLETION, group="Options")
    return app
