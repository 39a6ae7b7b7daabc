"""`tally spam words`: what is known of words."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, answer_table, print_result


def words(
    *names: str,
    store: File | None = None,
    most: Annotated[int, Parameter(show_default=True)] = 30,
    mass: Annotated[float, Parameter(show_default=True)] = 0.95,
    json: bool = False,
) -> None:
    """Show how often words are in ham and in spam, the most telling first.

    θ is the probability that a token of a mail is this word, in either class,
    with its credible interval; the weight is log θ(spam) − log θ(ham). Words of
    headers, links and hidden text have their kind before them: subject:win.

      tally spam words
      tally spam words free subject:free viagra
      tally spam words --most 1000 --json

    Parameters
    ----------
    names
        Some words; by default those that tell most.
    store
        The store: a file, or postgresql://…
    most
        How many words to show.
    mass
        The mass of the intervals.
    json
        Write it as JSON.
    """
    if most < 1:
        raise UsageError(f"--most is {most}; expected 1 or more.")
    if not 0 < mass < 1:
        raise UsageError(f"--mass is {mass}; expected a number between 0 and 1.")
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.word_statistics import telling_words

    with Store(store, read_only=True) as counts:
        found = telling_words(counts, names, most, mass)
    if json:
        answer_json([one._asdict() for one in found])
        return
    if not found:
        print_result("no words were learned yet")
        return
    lines: list[Any] = [
        (one.word, f"{one.weight:+.2f}", str(one.ham), _share(one.theta_ham), str(one.spam), _share(one.theta_spam))
        for one in found
    ]
    answer_table(("word", "weight", "in ham", "10⁶ θ", "in spam", "10⁶ θ"), lines, (1, 2, 3, 4, 5))
    print_result(f"\nin how many mails, and θ in millionths with its {mass:.0%} credible interval")


def _share(theta: Any) -> str:
    """A probability in millionths, with its interval."""
    value, low, high = (f"{1e6 * one:.0f}" if one > 1e-5 else f"{1e6 * one:.1f}" for one in theta)
    return f"{value} {low}–{high}"
