"""`tally spam watch`: classify the mail of a Maildir."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import File, printable


def watch(
    maildir: File,
    /,
    *,
    junk: Annotated[str, Parameter(show_default=True)] = "Junk",
    action: Annotated[Literal["move", "flag"], Parameter(show_default=True)] = "move",
    every: Annotated[float, Parameter(show_default=True)] = 5.0,
    once: bool = False,
    store: File | None = None,
    thresholds: str | None = None,
    costs: str | None = None,
    json: bool = False,
) -> None:
    """Classify new mail of a Maildir, and learn from moves between its folders.

    Spam is moved to the junk folder; unsure mail stays. Moving a mail to or from
    the junk folder teaches the filter its class. Mail that is in a folder at the
    start is not learned: learn it before.

      tally spam learn --ham ~/Maildir --spam ~/Maildir/.Junk
      tally spam watch ~/Maildir
      tally spam watch ~/Maildir --once        # by cron

    The state is stored in MAILDIR/tally-watch.sqlite. The command can be stopped
    at any time and continues at the next start. It ignores Trash, Sent and Drafts.

    Parameters
    ----------
    maildir
        The folder with new, cur and tmp; its other folders are .Name.
    junk
        The folder of spam, created if it does not exist.
    action
        Move spam to the junk folder, or leave it and set the flag F.
    every
        Seconds between two scans.
    once
        Scan once and exit.
    store
        The store: a file or a PostgreSQL address, postgresql://…
    thresholds
        Probabilities of spam HAM,SPAM: ham at most HAM, spam at least SPAM; by default 0.1,0.995.
    costs
        Costs of a false positive, a false negative and an unsure verdict; instead of --thresholds.
    json
        Write a line of JSON for each event.
    """
    if not every > 0:
        raise UsageError(f"--every is {every}; expected more than 0 seconds.")
    name = junk.removeprefix(".")
    if not name or "/" in name:
        raise UsageError(f"--junk is {junk!r}; expected the name of a folder, such as Junk.")
    import os

    if not os.path.isdir(maildir):
        raise CommandError(f"folder {maildir!r} does not exist; expected a Maildir.")
    from tallybayes.apps.spam.check_mail import thresholds_of
    from tallybayes.apps.spam.maildir_watcher import MaildirWatcher
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.train import recalibrate

    with Store(store) as counts:
        watcher = MaildirWatcher(maildir, counts, name, action, thresholds_of(thresholds, costs))
        try:
            while True:
                learned = False
                for event in watcher.scan_once():
                    learned = learned or event.what == "learned"
                    _print_event(event, json)
                if learned:
                    recalibrate(counts)
                if once:
                    return
                time.sleep(every)
        finally:
            watcher.close()


def _print_event(event: object, as_json: bool) -> None:
    """Print an event as text or as JSON."""
    import json
    import sys

    from tallybayes.apps.spam.maildir_watcher import Event

    assert isinstance(event, Event)
    if as_json:
        sys.stdout.write(json.dumps(event._asdict()) + "\n")
    elif event.what == "judged":
        sys.stdout.write(f"{event.verdict:<6} {event.probability:.6f}  {printable(event.file)}\n")
    else:
        sys.stdout.write(f"learned as {event.verdict}  {printable(event.file)}\n")
    sys.stdout.flush()
