"""`tally spam learn`: count mail whose class is known."""

from __future__ import annotations

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.commands.spam.spam_options import counting, described, mails, plain_paths, summed
from tallybayes.apps.cli.console import File, answer_json, print_result, print_status


def learn(
    *,
    ham: tuple[File, ...] = (),
    spam: tuple[File, ...] = (),
    store: File | None = None,
    json: bool = False,
) -> None:
    """Learn from mail that is known to be ham or spam.

    A mail is learned once, however often it comes: what tells it is what its
    writer gave it, not where it lies. What was learned as the other class is
    left so; 'tally spam relearn' moves it. Whatever is said to be learned
    stays learned, also where the machine fails meanwhile.

      tally spam learn --ham ~/Maildir --spam ~/Maildir/.Junk
      tally spam learn --spam junk.mbox
      tally spam learn --ham - < mail.eml

    Parameters
    ----------
    ham
        Wanted mail: an mbox, a Maildir, a folder of files, files, or -.
    spam
        Unwanted mail, the same.
    store
        The store: a file, or postgresql://…
    json
        Write what was done as JSON.
    """
    if not ham and not spam:
        raise UsageError("there is nothing to learn from; expected --ham PATH, --spam PATH or both.")
    plain_paths((*ham, *spam))
    from tallybayes.apps.spam.store.spam_store import Label, Store
    from tallybayes.apps.spam.train import learn as learn_mails
    from tallybayes.apps.spam.train import recalibrate
    from tallybayes.apps.spam.unpacking import NotMailError, listed

    parts: dict[Label, tuple[str, ...]] = {"ham": plain_paths(ham), "spam": plain_paths(spam)}
    skipped: list[NotMailError] = []
    with Store(store, create=True) as counts:
        done = summed(counting(learn_mails(counts, parts, skipped=skipped), "learning"))
        learned = sum(found["learned"] for found in done.values())
        calibrated = recalibrate(counts, always=learned >= 50)
        state = counts.state()
        place = counts.place
    if skipped:
        print_status(listed(skipped))
    if json:
        told = {label: {what: found[what] for what in ("learned", "known", "other")} for label, found in done.items()}
        answer_json({"store": place, **told, "calibrated": calibrated, "total": {"ham": state.ham, "spam": state.spam}})
        return
    for label, found in done.items():
        known = f"; {mails(found['known'])} known before, left as they are" if found["known"] else ""
        if found.total():
            print_result(f"learned {mails(found['learned'])} as {label}{known}")
    if not any(found.total() for found in done.values()):
        print_result("there is no mail in what was named")
    print_result(f"{place} has {described(state)} now")
    if not state.ham or not state.spam:
        print_result(f"no {'spam' if state.ham else 'ham'} yet: every verdict is unsure until there is some")
