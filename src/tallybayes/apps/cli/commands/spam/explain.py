"""`tally spam explain`: the words that decided."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.commands.spam.spam_options import plain_paths
from tallybayes.apps.cli.console import File, answer_json, answer_table, print_result, printable


def explain(
    file: File = "-",
    /,
    *,
    store: File | None = None,
    most: Annotated[int, Parameter(show_default=True)] = 20,
    picture: File | None = None,
    json: bool = False,
) -> None:
    """Say which words of a mail decided, and how much each weighs.

    Weights are in nats, towards spam where positive: with what is said before
    any word they add up to the log-odds, log p(spam) − log p(ham). Words of
    headers, links and hidden text have their kind before them.

      tally spam explain mail.eml
      tally spam explain --most 50 < mail.eml
      tally spam explain mail.eml --picture why.svg

    Parameters
    ----------
    file
        A mail; - for standard input, which is the default.
    store
        The store: a file, or postgresql://…
    most
        How many words to show.
    picture
        Draw it, too: a file that ends in .svg, .pdf or .png.
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
        raise CommandError(f"{path} has no mail.")
    with Store(store, read_only=True) as counts:
        verdict = classify_mail(counts, raw, Thresholds())
        before, evidence = evidence_of(counts, raw)
        learned = counts.label_of(content_id(raw))
    identity = content_id(raw).hex()
    if picture is not None:
        _draw(picture, before, evidence, verdict.log_odds)
    if json:
        words = [one._asdict() for one in evidence]
        head = {"file": name, "id": identity, "learned_as": learned, **verdict._asdict()}
        answer_json({**head, "words": words, "before_any_word": before})
        return
    print_result(f"{verdict.verdict}, p(spam) = {verdict.probability:.6f}, log-odds {verdict.log_odds:+.3f}")
    print_result(f"id {identity[:16]}, {'not learned' if learned is None else f'learned as {learned}'}\n")
    rest = evidence[most:]
    lines = [(one.word, f"{one.weight:+.3f}", f"{one.ham:,}", f"{one.spam:,}") for one in evidence[:most]]
    if rest:
        lines.append((f"{len(rest):,} more words", f"{sum(one.weight for one in rest):+.3f}", "", ""))
    lines.append(("before any word", f"{before:+.3f}", "", ""))
    answer_table(("word", "weight", "in ham", "in spam"), [tuple(map(printable, line)) for line in lines], (1, 2, 3))
    if picture is not None:
        print_result(f"\ndrew {picture}")


class _Weights:
    """Weights as an explanation takes them: of one row."""

    def __init__(self, weights: list[float]) -> None:
        self.weights = weights

    def log_ratios(self, rows: slice) -> Any:
        """The weights of the row."""
        import numpy as np

        return np.array([self.weights])[rows]

    def cells(self, row: int) -> list[None]:
        """A word is its own name, and has no value beside it."""
        return [None for _ in self.weights]


def _draw(path: str, before: float, evidence: list[Any], log_odds: float) -> None:
    import numpy as np

    import tallybayes as tb

    columns = ["(before any word)", *(printable(one.word) for one in evidence)]
    parts: Any = [_Weights([before, *(one.weight for one in evidence)])]
    pair = np.array(["spam"]), np.array(["ham"])
    tb.Explanation(columns, parts, np.array([log_odds]), *pair, np.array([False])).plot().save(path)
