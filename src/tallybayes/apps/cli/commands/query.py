"""`tally query`: posterior distributions of a Bayesian network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.model_files import load


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
        A network that `tally fit` wrote, or a .bif or .json file.
    more
        Words without an option, which are rejected.
    nodes
        The query columns; of several, their joint distribution. Of continuous ones, mean and standard deviation.
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
    known, done = (_known(model, some, option) for some, option in ((given, "given"), (do, "do")))
    if not nodes:
        best = model.most_probable(known, do=done)
        if json:
            answer_json({"given": known, "do": done, "most_probable": dict(best)})
        else:
            print_result(repr(best))
        return
    found = model.query(list(nodes), known, do=done)
    if json and not found.levels:
        numbers = _moments(found)
        numbers |= {"interval_90": found.interval(0.9).tolist()} if len(nodes) == 1 else {}
        answer_json({"nodes": list(nodes), "given": known, "do": done, **numbers})
    elif json:
        discrete = found.marginal(*found.discrete_nodes)
        rows = [
            {
                **dict(zip(discrete.nodes, level if len(discrete.nodes) > 1 else (level,), strict=True)),
                "probability": probability,
                **(_moments(found[level]) if found.continuous_nodes and probability else {}),
            }
            for level, probability in discrete.items()
        ]
        answer_json({"nodes": list(nodes), "given": known, "do": done, "answer": rows})
    else:
        print_result(repr(found))


def _moments(found: Any) -> dict[str, Any]:
    """Mean and standard deviation of one continuous node; means, standard deviations and covariance of several."""
    if len(found.continuous_nodes) == 1:
        return {"mean": found.mean, "std": found.std}
    return {"mean": found.mean.tolist(), "std": found.std.tolist(), "covariance": found.covariance.tolist()}


def _known(model: Any, pairs: Sequence[str], option: str) -> dict[str, Any]:
    """What is known, as the network has it: levels by what is typed, measured values as numbers."""
    found: dict[str, Any] = {}
    for text in pairs:
        node, sign, value = text.partition("=")
        if not sign or not node:
            raise UsageError(f"--{option} has {text!r}; expected COLUMN=LEVEL.")
        model.graph_.require([node])
        levels = model.levels_.get(node)
        if levels is None and value == "(missing)":  # the library says so where that cannot be
            found[node] = value
        elif levels is None:
            try:
                found[node] = float(value)
            except ValueError:
                raise UsageError(
                    f"--{option} has {value!r} for {node!r}, which is measured; expected a number."
                ) from None
        else:
            found[node] = _level(value, levels)
    return found


def _level(text: str, levels: Sequence[Any]) -> Any:
    """A level by what is typed; the library says which there are if it is none."""
    for level in levels:
        if str(level) == text or (isinstance(level, bool) and str(level).lower() == text.lower()):
            return level
    return text
