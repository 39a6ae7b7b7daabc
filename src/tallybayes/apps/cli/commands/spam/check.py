"""`tally spam check`: whether mail is spam. As a rule it is not run from here: see `tallybayes.apps.cli.fast_spam`."""

from __future__ import annotations

from tallybayes.apps.cli.console import STANDARD_INPUT, File
from tallybayes.apps.spam.check_mail import CheckOptions
from tallybayes.apps.spam.check_mail import check as check_mails


def check(
    *files: File,
    store: File | None = None,
    header: bool = False,
    json: bool = False,
    thresholds: str | None = None,
    costs: str | None = None,
) -> int:
    """Say of mail whether it is ham, spam or unsure, and how probable spam is.

    Exit code: 0 ham, 1 spam, 2 unsure; of several mails 1 if any is spam,
    else 2 if any is unsure. Whatever is no verdict is 3 or more.

      tally spam check < mail.eml
      tally spam check ~/Maildir/new/* --json
      tally spam check --header < mail.eml > judged.eml
      tally spam check --costs 200,10,1 inbox.mbox

    With --header, for procmail, maildrop or sieve, the mail comes out byte for
    byte as it came, after one header, such as 'X-Tally: spam;
    probability=0.998712'. Where anything fails, it comes out without one. Act
    on the exit code or on the words spam and unsure: anybody can write
    'X-Tally: ham' into a mail.

    Parameters
    ----------
    files
        Mail: mbox, Maildir, folders of files, files, or - for standard input, which is the default.
    store
        The store: a file, or postgresql://…
    header
        Pass the mail through, with a header that says what it is.
    json
        Write a line of JSON for every mail.
    thresholds
        Ham up to the first probability of spam, spam from the second on: 0.1,0.995 by default.
    costs
        What it costs to call ham spam, to call spam ham, and to be unsure; instead of --thresholds.
    """
    names = tuple("-" if name == STANDARD_INPUT else name for name in files)
    return check_mails(CheckOptions(names, store, header, json, thresholds, costs))
