"""`tally spam check`: classify mail. Usually `tallybayes.apps.cli.fast_spam` runs it without this module."""

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
    """Classify mail as ham, spam or unsure, and print the probability of spam.

    Exit code: 0 ham, 1 spam, 2 unsure; for several mails 1 if any is spam,
    else 2 if any is unsure. Errors have exit codes of 3 or more.

      tally spam check < mail.eml
      tally spam check ~/Maildir/new/* --json
      tally spam check --header < mail.eml > checked.eml
      tally spam check --costs 200,10,1 inbox.mbox

    With --header, for procmail, maildrop or sieve, the mail is copied unchanged
    to standard output after one more header, such as 'X-Tally: spam;
    probability=0.998712'. If an error occurs, it is copied without the header.
    Filter by the exit code or by the words spam and unsure: a sender can forge
    'X-Tally: ham'.

    Parameters
    ----------
    files
        Mail: mbox, Maildir, folders of files, files, or - for standard input (default).
    store
        The store: a file or a PostgreSQL address, postgresql://…
    header
        Copy the mail to standard output, with the verdict in a header.
    json
        Write a line of JSON for each mail.
    thresholds
        Probabilities of spam HAM,SPAM: ham at most HAM, spam at least SPAM; by default 0.1,0.995.
    costs
        Costs of a false positive, a false negative and an unsure verdict; instead of --thresholds.
    """
    names = tuple("-" if name == STANDARD_INPUT else name for name in files)
    return check_mails(CheckOptions(names, store, header, json, thresholds, costs))
