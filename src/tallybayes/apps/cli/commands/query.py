"""`tally query`: posterior distributions of a Bayesian network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, by_text, print_result
from tallybayes.apps.cli.model_files import load

if TYPE_CHECKING:
    import tallybayes as tb


def query(
    network: File,
    /,
    *more: Annotated[str, Parameter(show=False)],
    nodes: tuple[str, ...] = (),
    given: tuple[str, ...] = (),
    do: tuple[str, ...] = (),
    json: bool = False,
) -> None:
    """Compute posterior distributions of a Bayesian network exactly.

    Without --nodes, print the most probable assignment of all columns.

      tally query alarm.bif --given call=yes --nodes burglar
      tally query alarm.bif --given call=yes quake=yes --nodes burglar
      tally query days.tally --do sprinkler=on --nodes wet rain

    Parameters
    ----------
    network
        A network written by `tally fit`, or a .bif or .json file.
    more
        Words without an option, which are rejected.
    nodes
        The query columns. Several give their joint distribution; continuous ones give mean and standard deviation.
    given
        Evidence, as COLUMN=LEVEL.
    do
        Interventions, as COLUMN=LEVEL.
    json
        Write the result as JSON.
    """
    import tallybayes as tb

    model: Any = load(network, tb.BayesianNetwork)
    if more:
        raise UsageError(f"{more[0]!r} has no option before it; expected --nodes COLUMN, --given or --do COLUMN=LEVEL.")
    model.graph_.require(list(nodes))
    evidence = _evidence(model, given, "given")
    interventions = _evidence(model, do, "do")
    if not nodes:
        best = model.most_probable(evidence, do=interventions)
        if json:
            answer_json({"given": evidence, "do": interventions, "most_probable": dict(best)})
        else:
            print_result(repr(best))
        return
    result = model.query(list(nodes), evidence, do=interventions)
    if json and not result.levels:
        moments = _moments(result)
        moments |= {"interval_90": result.interval(0.9).tolist()} if len(nodes) == 1 else {}
        answer_json({"nodes": list(nodes), "given": evidence, "do": interventions, **moments})
    elif json:
        discrete = result.marginal(*result.discrete_nodes)
        rows = [
            {
                **dict(zip(discrete.nodes, level if len(discrete.nodes) > 1 else (level,), strict=True)),
                "probability": probability,
                **(_moments(result[level]) if result.continuous_nodes and probability else {}),
            }
            for level, probability in discrete.items()
        ]
        answer_json({"nodes": list(nodes), "given": evidence, "do": interventions, "probabilities": rows})
    else:
        print_result(repr(result))


def _moments(result: tb.results.QueryResult) -> dict[str, Any]:
    """Return mean and standard deviation of one continuous node, or means, deviations and covariance of several."""
    if len(result.continuous_nodes) == 1:
        return {"mean": result.mean, "std": result.std}
    return {"mean": result.mean.tolist(), "std": result.std.tolist(), "covariance": result.covariance.tolist()}


def _evidence(model: tb.BayesianNetwork, pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Return node -> value for texts COLUMN=VALUE: levels of discrete nodes, numbers for continuous nodes."""
    evidence: dict[str, Any] = {}
    for text in pairs:
        node, sign, value = text.partition("=")
        if not sign or not node:
            raise UsageError(f"--{option} has {text!r}; expected COLUMN=LEVEL.")
        model.graph_.require([node])
        levels = model.levels_.get(node)
        if levels is None and value == "(missing)":  # the library raises an error where this is invalid
            evidence[node] = value
        elif levels is None:
            try:
                evidence[node] = float(value)
            except ValueError:
                raise UsageError(
                    f"--{option} has {value!r} for the continuous node {node!r}; expected a number."
                ) from None
        else:
            evidence[node] = by_text(levels, value)
    return evidence
