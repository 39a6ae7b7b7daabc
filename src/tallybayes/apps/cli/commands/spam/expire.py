"""`tally spam expire`: remove old, rare words."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, print_result


def expire(
    *,
    days: Annotated[float, Parameter(show_default=True)] = 90.0,
    most: int | None = None,
    mails: int | None = None,
    store: File | None = None,
    json: bool = False,
) -> None:
    """Remove old words that occur in one mail only, so that the store stays small.

    The words are removed from the counts and from the stored mails, so that
    later changes (forget, relearn) remain exact. Run it regularly by cron.

      tally spam expire
      tally spam expire --days 30 --most 500000 --mails 100000

    Parameters
    ----------
    days
        Remove words of one mail that no mail has had for this number of days.
    most
        Maximum number of words: the rarest and oldest further words are removed, too.
    mails
        Number of newest mails whose words are stored. Older mails remain counted, but cannot be forgotten or
        relearned, and would be counted again.
    store
        The store: a file or a PostgreSQL address, postgresql://…
    json
        Write the numbers of mails as JSON.
    """
    if not days >= 0:
        raise UsageError(f"--days is {days}; expected 0 or more.")
    if mails is not None and mails < 0:
        raise UsageError(f"--mails is {mails}; expected 0 or more.")
    if most is not None and most < 1:
        raise UsageError(f"--most is {most}; expected 1 or more.")
    from tallybayes.apps.spam.store.maintenance import expire_words
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.train import recalibrate

    with Store(store) as counts:
        expired = expire_words(counts, days=days, most=most, messages=mails)
        if expired.words:
            recalibrate(counts, always=True)
        location = counts.location
    if json:
        answer_json({"store": location, **expired._asdict()})
        return
    print_result(
        f"removed {expired.words:,} words from the counts and from {expired.messages:,} mails; "
        f"{expired.words_left:,} words remain"
    )
    if expired.released:
        print_result(f"{expired.released:,} mails remain counted, but cannot be forgotten or relearned")
    print_result(
        f"size of {location}: {expired.bytes_after / 1e6:,.1f} MB, {expired.bytes_before / 1e6:,.1f} MB before"
    )
