"""`tally spam`: train and run a spam filter. Each command is a module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts import App

_HELP = """\
Train and run a spam filter.

PATH is an mbox, a Maildir, a folder of files, a file, or - for standard input.
The counts are stored in one file, $XDG_DATA_HOME/tally/spam.sqlite; --store or
the environment variable TALLY_SPAM_STORE names another file, or a PostgreSQL
database for a whole site. Word counts are stored, no text.

  tally spam learn --ham ~/Maildir --spam ~/Maildir/.Junk
  tally spam check < mail.eml
  tally spam explain mail.eml
  tally spam relearn --as ham mail.eml

Exit codes of check: 0 ham, 1 spam, 2 unsure. Exit codes of all commands:
3 error in a file or the store, 64 invalid command line, 70 internal error,
130 interrupted, 141 closed output pipe. The other commands return 0 on success.\
"""

# In the order of the help: module and function of each command, and its line of help.
COMMANDS = {
    "learn": ("learn:learn", "Learn from mail with known class."),
    "check": ("check:check", "Classify mail as ham, spam or unsure."),
    "explain": ("explain:explain", "Show the weights of evidence of the words of a mail."),
    "relearn": ("relearn:relearn", "Correct the class of learned mail."),
    "forget": ("forget:forget", "Remove mail from the counts exactly."),
    "words": ("words:words", "Show the word probabilities in ham and in spam."),
    "stats": ("stats:stats", "Show the numbers of mails and words, and the size of the store."),
    "evaluate": ("evaluate:evaluate", "Compute metrics of the verdicts on mail with known class."),
    "watch": ("watch:watch", "Classify new mail of a Maildir, and learn from moves between folders."),
    "expire": ("expire:expire", "Remove old words that occur in one mail only."),
    "export": ("export:export", "Export the counts as a tally."),
    "import": ("import_tally:add", "Add the counts of an exported tally."),
}


def make_spam(command: str | None = None, **options: Any) -> App:
    """Return the cyclopts application of the commands of the spam filter.

    Parameters
    ----------
    command : str, optional
        The command to run. Its module is imported for the full help; the other commands get one line of help.
    **options
        Further options of the application.
    """
    from cyclopts import App

    app = App(name="spam", help=_HELP, help_format="plaintext", **options)
    for position, (name, (function, line)) in enumerate(COMMANDS.items()):
        help_option = {} if name == command else {"help": line}
        app.command(f"tallybayes.apps.cli.commands.spam.{function}", name=name, sort_key=position, **help_option)
    app["--help"].group = "Options"
    return app
