"""`tally spam explain`: weights of evidence of the words of a mail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.commands.spam.spam_options import plain_paths
from tallybayes.apps.cli.console import File, answer_json, answer_table, print_result, printable

if TYPE_CHECKING:
    from tallybayes.apps.spam.verdicts import WordEvidence


def explain(
    file: File = "-",
    /,
    *,
    store: File | None = None,
    most: Annotated[int, Parameter(show_default=True)] = 20,
    plot: File | None = None,
    json: bool = False,
) -> None:
    """Show the weights of evidence of the words of a mail.

    Weights are in nats; positive weights are evidence for spam. The weights and
    that of the prior add up to the log-odds, log p(spam) - log p(ham). Words of
    headers, links and hidden text have a prefix for their kind.

      tally spam explain mail.eml
      tally spam explain --most 50 < mail.eml
      tally spam explain mail.eml --plot why.svg

    Parameters
    ----------
    file
        A mail, or - for standard input (default).
    store
        The store: a file or a PostgreSQL address, postgresql://…
    most
        Maximum number of words to show.
    plot
        Plot the weights, too: a file with suffix .svg, .pdf or .png.
    json
        Write all weights as JSON.
    """
    if most < 1:
        raise UsageError(f"--most is {most}; expected 1 or more.")
    [path] = plain_paths([file])
    from tallybayes.apps.spam.spam_score import Thresholds
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.tokens.message_tokens import content_id, mails_in
    from tallybayes.apps.spam.verdicts import classify_mail, evidence_of

    name, raw = next(iter(mails_in([path])), (path, None))
    if raw is None:
        raise CommandError(f"{path} contains no mail; expected a file or a folder of mail.")
    with Store(store, read_only=True) as counts:
        verdict = classify_mail(counts, raw, Thresholds())
        prior, evidence = evidence_of(counts, raw)
        label = counts.label_of(content_id(raw))
    identity = content_id(raw).hex()
    if plot is not None:
        _draw(plot, prior, evidence, verdict.log_odds)
    if json:
        head = {"file": name, "id": identity, "learned_as": label, **verdict._asdict()}
        answer_json({**head, "words": evidence, "before_any_word": prior})
        return
    print_result(f"{verdict.verdict}, p(spam) = {verdict.probability:.6f}, log-odds {verdict.log_odds:+.3f}")
    print_result(f"id {identity[:16]}, {'not learned' if label is None else f'learned as {label}'}\n")
    remaining = evidence[most:]
    lines = [(word.word, f"{word.weight:+.3f}", f"{word.ham:,}", f"{word.spam:,}") for word in evidence[:most]]
    if remaining:
        lines.append((f"{len(remaining):,} more words", f"{sum(word.weight for word in remaining):+.3f}", "", ""))
    lines.append(("prior", f"{prior:+.3f}", "", ""))
    answer_table(("word", "weight", "in ham", "in spam"), [tuple(map(printable, line)) for line in lines], (1, 2, 3))
    if plot is not None:
        print_result(f"\nwrote {plot}")


class _Weights:
    """Weights of one row, in the interface that `tb.Explanation` expects."""

    def __init__(self, weights: list[float]) -> None:
        self.weights = weights

    def log_ratios(self, rows: slice) -> Any:
        """Return the weights of the row."""
        import numpy as np

        return np.array([self.weights])[rows]

    def cells(self, row: int) -> list[None]:
        """Return no cell values: the name of a word is its value."""
        return [None for _ in self.weights]


def _draw(path: str, prior: float, evidence: list[WordEvidence], log_odds: float) -> None:
    """Plot the weights of evidence."""
    import numpy as np

    import tallybayes as tb

    columns = ["(prior)", *(printable(word.word) for word in evidence)]
    parts: Any = [_Weights([prior, *(word.weight for word in evidence)])]
    pair = np.array(["spam"]), np.array(["ham"])
    tb.Explanation(columns, parts, np.array([log_odds]), *pair, np.array([False])).plot().save(path)
