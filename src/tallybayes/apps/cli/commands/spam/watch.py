"""`tally spam watch`: a Maildir that is looked after."""

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
    """Judge new mail of a Maildir, and learn from moves between its folders.

    Spam goes to the junk folder; what is unsure stays. Whoever moves a mail
    into that folder, or out of it, says what it is, and that is learned. The
    mail that lies there at the start is taken as it is: learn it before.

      tally spam learn --ham ~/Maildir --spam ~/Maildir/.Junk
      tally spam watch ~/Maildir
      tally spam watch ~/Maildir --once        # by cron

    What was seen where is kept in MAILDIR/tally-watch.sqlite. It can be stopped
    at any time, and goes on where it was. Trash, Sent and Drafts are left alone.

    Parameters
    ----------
    maildir
        The folder with new, cur and tmp; other folders are beside them, as .Name.
    junk
        The folder of spam, made where there is none.
    action
        Move spam to the junk folder, or leave it and set the flag F.
    every
        How many seconds to wait before looking again.
    once
        Look once, and end.
    store
        The store: a file, or postgresql://…
    thresholds
        Ham up to the first probability of spam, spam from the second on: 0.1,0.995 by default.
    costs
        What it costs to call ham spam, to call spam ham, and to be unsure; instead of --thresholds.
    json
        Write a line of JSON for everything that is done.
    """
    if not every > 0:
        raise UsageError(f"--every is {every}; expected more than 0 seconds.")
    name = junk.removeprefix(".")
    if not name or "/" in name:
        raise UsageError(f"--junk is {junk!r}; expected the name of a folder, such as Junk.")
    import os

    if not os.path.isdir(maildir):
        raise CommandError(f"there is no folder {maildir!r}; expected a Maildir.")
    from tallybayes.apps.spam.check_mail import thresholds_of
    from tallybayes.apps.spam.maildir_watcher import MaildirWatcher
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.train import recalibrate

    with Store(store) as counts:
        watched = MaildirWatcher(maildir, counts, name, action, thresholds_of(thresholds, costs))
        try:
            while True:
                learned = False
                for event in watched.scan_once():
                    learned = learned or event.what == "learned"
                    _tell(event, json)
                if learned:
                    recalibrate(counts)
                if once:
                    return
                time.sleep(every)
        finally:
            watched.close()


def _tell(event: object, as_json: bool) -> None:
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
