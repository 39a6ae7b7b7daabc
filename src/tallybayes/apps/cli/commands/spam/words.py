"""`tally spam words`: word probabilities in ham and in spam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, answer_table, print_result

if TYPE_CHECKING:
    from tallybayes.apps.spam.word_statistics import Theta


def words(
    *names: str,
    store: File | None = None,
    most: Annotated[int, Parameter(show_default=True)] = 30,
    mass: Annotated[float, Parameter(show_default=True)] = 0.95,
    json: bool = False,
) -> None:
    """Show the word probabilities in ham and in spam, by absolute weight.

    θ is the probability that a token of a mail of the class is this word, with
    its credible interval; the weight is log θ(spam) - log θ(ham). Words of
    headers, links and hidden text have a prefix for their kind: subject:win.

      tally spam words
      tally spam words free subject:free viagra
      tally spam words --most 1000 --json

    Parameters
    ----------
    names
        Words to show; by default those with the largest absolute weights.
    store
        The store: a file or a PostgreSQL address, postgresql://…
    most
        Maximum number of words to show.
    mass
        Probability mass of the credible intervals.
    json
        Write the words as JSON.
    """
    if most < 1:
        raise UsageError(f"--most is {most}; expected 1 or more.")
    if not 0 < mass < 1:
        raise UsageError(f"--mass is {mass}; expected a number between 0 and 1.")
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.word_statistics import word_probabilities

    with Store(store, read_only=True) as counts:
        statistics = word_probabilities(counts, names, most, mass)
    if json:
        answer_json(statistics)
        return
    if not statistics:
        print_result("the store has no words")
        return
    lines: list[Any] = [
        (
            word.word,
            f"{word.weight:+.2f}",
            str(word.ham),
            _millionths(word.theta_ham),
            str(word.spam),
            _millionths(word.theta_spam),
        )
        for word in statistics
    ]
    answer_table(("word", "weight", "in ham", "10⁶ θ", "in spam", "10⁶ θ"), lines, (1, 2, 3, 4, 5))
    print_result(f"\nnumbers of mails; θ in millionths with its {mass:.0%} credible interval")


def _millionths(theta: Theta) -> str:
    """Format a probability in millionths with its interval."""
    value, low, high = (f"{1e6 * part:.0f}" if part > 1e-5 else f"{1e6 * part:.1f}" for part in theta)
    return f"{value} {low}–{high}"
