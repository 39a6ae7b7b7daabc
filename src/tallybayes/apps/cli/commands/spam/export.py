"""`tally spam export`: the counts, for others."""

from __future__ import annotations

from tallybayes.apps.cli.commands.spam.spam_options import described
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.model_files import check_free, locked


def export(file: File, /, *, store: File | None = None, force: bool = False, json: bool = False) -> None:
    """Write the counts as a tally, for others to add to theirs.

    It has the numbers of ham and spam mails, and of those that have each word:
    no mail, but all words, which may be names. `tb.load` reads it, tallies add
    up with +, and 'tally spam import' adds it to a store.

      tally spam export counts.tally
      tally spam export counts.tally --store site.sqlite --force

    Parameters
    ----------
    file
        The file to write; it ends in .tally.
    store
        The store: a file, or postgresql://…
    force
        Replace the file that is there.
    json
        Write what was done as JSON.
    """
    check_free(file, force)
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.store.tally_exchange import to_tally

    with Store(store, read_only=True) as counts:
        state, tally = counts.state(), to_tally(counts)
    with locked(file):
        check_free(file, force)  # somebody else may have been quicker
        tally.save(file)
    if json:
        answer_json({"file": file, "ham": state.ham, "spam": state.spam, "words": state.words})
        return
    print_result(f"wrote {file}: {described(state)}")
