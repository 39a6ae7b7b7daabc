"""`tally spam expire`: words that were seen once, long ago, go."""

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
    """Let words go that were seen once, long ago, so that the store does not grow for ever.

    They leave the counts and the kept mails at once, so that whatever is
    forgotten or relearned later still adds up. Run it once in a while, by cron.

      tally spam expire
      tally spam expire --days 30 --most 500000 --mails 100000

    Parameters
    ----------
    days
        Words that one mail had, and no other in so many days, go.
    most
        Where more words than that are left, the rarest go too, the longest unseen first.
    mails
        Keep the words of so many mails, the newest. Older ones stay counted, but are not known any more: they
        cannot be forgotten or relearned, and would be learned again.
    store
        The store: a file, or postgresql://…
    json
        Write what was done as JSON.
    """
    if not days >= 0:
        raise UsageError(f"--days is {days}; expected 0 or more.")
    if mails is not None and mails < 0:
        raise UsageError(f"--mails is {mails}; expected 0 or more.")
    if most is not None and most < 1:
        raise UsageError(f"--most is {most}; expected 1 or more.")
    from tallybayes.apps.spam.store.maintenance import expire_words as let_go
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.train import recalibrate

    with Store(store) as counts:
        found = let_go(counts, days=days, most=most, messages=mails)
        if found.words:
            recalibrate(counts, always=True)
        place = counts.place
    if json:
        answer_json({"store": place, **found._asdict()})
        return
    print_result(
        f"{found.words:,} words went, out of the counts and of {found.messages:,} mails; {found.words_left:,} are left"
    )
    if found.released:
        print_result(f"{found.released:,} mails stay counted, and cannot be forgotten or relearned any more")
    print_result(f"{place} takes {found.bytes_after / 1e6:,.1f} MB, {found.bytes_before / 1e6:,.1f} MB before")
