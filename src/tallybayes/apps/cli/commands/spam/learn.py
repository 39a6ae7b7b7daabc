"""`tally spam learn`: learn from mail with known class."""

from __future__ import annotations

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.commands.spam.spam_options import (
    count_outcomes,
    finish_change,
    mails,
    plain_paths,
    show_progress,
)
from tallybayes.apps.cli.console import File, print_result


def learn(
    *,
    ham: tuple[File, ...] = (),
    spam: tuple[File, ...] = (),
    store: File | None = None,
    json: bool = False,
) -> None:
    """Learn from mail with known class.

    A mail is counted once, even if it is passed several times. It is identified
    by its content, not by its file. A mail that was learned as the other class
    is not changed; 'tally spam relearn' moves it. Every reported mail is
    committed, even if the machine fails later.

      tally spam learn --ham ~/Maildir --spam ~/Maildir/.Junk
      tally spam learn --spam junk.mbox
      tally spam learn --ham - < mail.eml

    Parameters
    ----------
    ham
        Ham: an mbox, a Maildir, a folder of files, files, or -.
    spam
        Spam, in the same forms.
    store
        The store: a file or a PostgreSQL address, postgresql://…
    json
        Write the numbers of mails as JSON.
    """
    if not ham and not spam:
        raise UsageError("missing option: pass --ham PATH, --spam PATH or both.")
    plain_paths((*ham, *spam))
    from tallybayes.apps.spam.store.spam_store import Label, Store
    from tallybayes.apps.spam.train import learn as learn_mails
    from tallybayes.apps.spam.unpacking import NotMailError

    paths: dict[Label, tuple[str, ...]] = {"ham": plain_paths(ham), "spam": plain_paths(spam)}
    skipped: list[NotMailError] = []
    with Store(store, create=True) as counts:
        outcomes = count_outcomes(show_progress(learn_mails(counts, paths, skipped=skipped), "learning"))
        learned = sum(of_class["learned"] for of_class in outcomes.values())
        summary = finish_change(counts, skipped, always=learned >= 50)
    if json:
        names = ("learned", "known", "other")
        numbers = {label: {name: of_class[name] for name in names} for label, of_class in outcomes.items()}
        summary.answer_json(**numbers, calibrated=summary.calibrated)
        return
    for label, of_class in outcomes.items():
        known = f"; {mails(of_class['known'])} already learned" if of_class["known"] else ""
        if of_class.total():
            print_result(f"learned {mails(of_class['learned'])} as {label}{known}")
    if not any(of_class.total() for of_class in outcomes.values()):
        print_result("no mail in these paths")
    print_result(str(summary))
    state = summary.state
    if not state.ham or not state.spam:
        print_result(f"no {'spam' if state.ham else 'ham'} yet: every verdict is unsure until both classes are learned")
