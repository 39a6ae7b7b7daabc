"""The cyclopts application `tally`. The module of a command is imported when the command is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cyclopts import App, Parameter

import tallybayes
from tallybayes.apps.cli.help_text import COMMANDS, COMPLETION, HELP

_MOST_VALUES = 30  # values of one option that zsh completes after the first


class _Tally(App):
    """The application, with completion of folders in bash and of options with several values in bash and zsh."""

    def generate_completion(self, **options: Any) -> str:
        """Return the completion script of a shell."""
        script = super().generate_completion(**options).replace("complete -F ", "complete -o filenames -o default -F ")
        several = "|".join(sorted({name.lstrip("-") for name in _options_of_several_values(self)}))
        # In zsh, ":name:action" is one value of an option, and "::name:action" an optional one, before which other
        # options are recognized. (":*PATTERN:name:action", any number of values, consumes the word that ends them.)
        values = r"]:\1:\2" + r"::\1:\2" * _MOST_VALUES + r"\3"
        return re.sub(rf"\]:({several}):([^'\"]+)(['\"])", values, script)


def _options_of_several_values(app: App) -> Iterator[str]:
    """Names of the options of a command and its subcommands that take more than one value."""
    for argument in app.assemble_argument_collection() if app.default_command else ():
        if argument.token_count()[1]:
            yield from (name for name in argument.names if name.startswith("-"))
    for name in app:
        if not name.startswith("-"):
            yield from _options_of_several_values(app[name])


def make_app(command: str | None = None, words: Sequence[str] = ()) -> App:
    """Return the cyclopts application of the command `tally`.

    Parameters
    ----------
    command : str, optional
        The command to run. Its module is imported for the full help; the other commands get one line of help.
    words : sequence of str
        All arguments. The subcommand of `tally spam` is found among them.
    """
    app = _Tally(
        name="tally",
        help=HELP,
        help_format="plaintext",
        version=tallybayes.__version__,
        default_parameter=Parameter(negative=(), show_default=False, show_env_var=False, consume_multiple=True),
    )
    for position, (name, line) in enumerate(COMMANDS.items()):
        if name == "spam":
            from tallybayes.apps.cli.commands.spam import COMMANDS as OF_SPAM
            from tallybayes.apps.cli.commands.spam import make_spam

            subcommand = next((word for word in words if word in OF_SPAM), None)
            app.command(make_spam(subcommand, default_parameter=app.default_parameter, sort_key=position))
            continue
        options = {} if name == command else {"help": line}
        app.command(f"tallybayes.apps.cli.commands.{name}:{name}", name=name, sort_key=position, **options)
    app["--help"].group = app["--version"].group = "Options"
    app.register_install_completion_command(help=COMPLETION, group="Options")
    return app
