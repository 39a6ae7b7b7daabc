"""`tally spam`: a filter that learns from mail, judges it, says why, and forgets again; a file for each command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts import App

_HELP = """\
A spam filter that learns from mail, judges it, says why, and forgets again.

PATH is an mbox, a Maildir, a folder of files, a file, or - for standard input.
What is learned lies in one file, $XDG_DATA_HOME/tally/spam.sqlite; another one,
or a PostgreSQL database that a site shares, is named with --store or in the
environment variable TALLY_SPAM_STORE. Counts of words are kept, no text.

  tally spam learn --ham ~/Maildir --spam ~/Maildir/.Junk
  tally spam check < mail.eml
  tally spam explain mail.eml
  tally spam relearn --as ham mail.eml

Exit codes of check: 0 ham, 1 spam, 2 unsure. Of all commands: 3 refused (a
file, the store), 64 the command line is wrong, 70 a fault of ours, 130
interrupted, 141 who reads the output has gone; 0 done, where nothing is judged.\
"""

# In the order of the help: the file of each, and what it does.
COMMANDS = {
    "learn": ("learn:learn", "Learn from mail that is known to be ham or spam."),
    "check": ("check:check", "Say of mail whether it is ham, spam or unsure."),
    "explain": ("explain:explain", "Say which words of a mail decided, and how much each weighs."),
    "relearn": ("relearn:relearn", "Correct what mail was learned as."),
    "forget": ("forget:forget", "Take mail out of the counts again, as if never seen."),
    "words": ("words:words", "Show how often words are in ham and in spam, the most telling first."),
    "stats": ("stats:stats", "Show what was learned, and what it takes."),
    "evaluate": ("evaluate:evaluate", "Measure the verdicts on mail that is known to be ham or spam."),
    "watch": ("watch:watch", "Judge new mail of a Maildir, and learn from moves between its folders."),
    "expire": ("expire:expire", "Let words go that were seen once, long ago."),
    "export": ("export:export", "Write the counts as a tally, for others to add to theirs."),
    "import": ("import_tally:add", "Add the counts of a tally that others made."),
}


def make_spam(asked: str | None = None, **options: Any) -> App:
    """The commands of the filter.

    Parameters
    ----------
    asked : str, optional
        The one whose own help is wanted, in full; of all others a line is told, and nothing is imported.
    **options
        Of the App.
    """
    from cyclopts import App

    app = App(name="spam", help=_HELP, help_format="plaintext", **options)
    for place, (name, (where, line)) in enumerate(COMMANDS.items()):
        told = {} if name == asked else {"help": line}
        app.command(f"tallybayes.apps.cli.commands.spam.{where}", name=name, sort_key=place, **told)
    app["--help"].group = "Options"
    return app
