"""`tally spam export`: export the counts as a tally."""

from __future__ import annotations

from tallybayes.apps.cli.commands.spam.spam_options import describe_store
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.model_files import check_free, locked


def export(file: File, /, *, store: File | None = None, force: bool = False, json: bool = False) -> None:
    """Export the counts as a tally, which can be added to another store.

    It has the numbers of ham and spam mails in total and by word. It contains
    no mail, but all words, which may be names. `tb.load` reads it; tallies are
    added with +; 'tally spam import' adds it to a store.

      tally spam export counts.tally
      tally spam export counts.tally --store site.sqlite --force

    Parameters
    ----------
    file
        The file to write, with suffix .tally.
    store
        The store: a file or a PostgreSQL address, postgresql://…
    force
        Replace an existing file.
    json
        Write the numbers of mails as JSON.
    """
    check_free(file, force)
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.store.tally_exchange import to_tally

    with Store(store, read_only=True) as counts:
        state = counts.state()
        tally = to_tally(counts)
    with locked(file):
        check_free(file, force)  # another process may have written it meanwhile
        tally.save(file)
    if json:
        answer_json({"file": file, "ham": state.ham, "spam": state.spam, "words": state.words})
        return
    print_result(f"wrote {file}: {describe_store(state)}")
