"""Would the tests notice? One operator, comparison or constant is changed, and the tests of its module are run.

``make mutate``, or ``python tests/mutate.py [MODULE ...] [--number 300] [--seed 0] [--jobs 2] [--again FILE]``:

MODULE is a file or folder of the package, such as ``beliefs`` or ``families/poisson.py``. Of all changes that could be
made there, a number is drawn at random; each runs in a process of its own, in memory: no file is touched. A change that
some test fails under, or that takes many times as long, is killed; what survives is printed, and is either the same
program in other words or a test that is missing. ``--again`` runs only what survived according to such an output.
"""

import argparse
import ast
import importlib.abc
import importlib.util
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, UNIT = ROOT / "src" / "tallybayes", ROOT / "tests" / "unit"
FOLDERS = ["families", "beliefs"]
SECONDS = 300.0  # the tests of a module take some ten, those of others that use it as many
# Where families and beliefs are asked through what uses them.
ELSEWHERE = {
    "": ["laws/test_belief_laws.py", "laws/test_one_tally.py", "laws/test_counting_laws.py"],
    "empirical": ["unit/models/whole/test_empirical_prior.py", "unit/models/whole/test_default_prior.py"],
    "left_out": ["unit/models/classifiers/answers/test_held_out.py", "unit/inference/test_leave_one_out.py"],
    "form": ["unit/models/classifiers/answers"],
    "multivariate": ["unit/models/classifiers/discriminant", "unit/inference/test_missing_cells.py"],
    "linear": ["unit/models/regression", "unit/models/networks/network/test_lines.py"],
}
# Hypothesis is imported before pytest could look at it, which it would warn of.
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutant(NamedTuple):
    """One change of one module: the place, and the line as it becomes."""

    module: Path
    number: int  # among the changes of the module
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.module.relative_to(PACKAGE)}:{self.line}: [{self.number}] {self.text}"


def places(node: ast.AST) -> Iterator[ast.AST]:
    """What could be changed, in order: no types, no messages of errors, no text, and not how a class is declared."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases") or isinstance(node, ast.Raise | ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (
                isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            ):
                yield from [child] if otherwise(child) else []
                yield from places(child)


def otherwise(node: ast.AST) -> ast.AST | None:
    """A node of the same kind that says something else; None where there is nothing to change."""
    other = copy(node)
    if isinstance(other, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(other.op) in SWAPS:
        sides = [getattr(other, side, None) for side in ("left", "right", "value")]
        if any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides):
            return None
        other.op = SWAPS[type(other.op)]()  # type: ignore[assignment]
    elif isinstance(other, ast.Compare) and type(other.ops[0]) in SWAPS:
        other.ops = [SWAPS[type(other.ops[0])](), *other.ops[1:]]  # type: ignore[list-item]
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.USub):
        other.op = ast.UAdd()
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        other.operand = ast.UnaryOp(ast.Not(), other.operand)
    elif isinstance(other, ast.Constant) and isinstance(other.value, bool):
        other.value = not other.value
    elif isinstance(other, ast.Constant) and isinstance(other.value, int | float):
        other.value += 1
    else:
        return None
    return other


def mutants_of(module: Path) -> list[Mutant]:
    """Every change that can be made to a module."""
    found = []
    for number, node in enumerate(places(ast.parse(module.read_text(encoding="utf-8")))):
        text = f"{ast.unparse(node)}  →  {ast.unparse(otherwise(node))}"  # type: ignore[arg-type]
        found.append(Mutant(module, number, node.lineno, text))  # type: ignore[attr-defined]
    return found


def changed(mutant: Mutant) -> ast.Module:
    """The module with that change."""
    tree = ast.parse(mutant.module.read_text(encoding="utf-8"))
    node = list(places(tree))[mutant.number]
    node.__dict__.update(vars(otherwise(node)))  # type: ignore[arg-type]
    return ast.fix_missing_locations(tree)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module changed, before anyone else is asked for it."""

    def __init__(self, mutant: Mutant):
        self.mutant = mutant
        parts = mutant.module.relative_to(PACKAGE.parent).with_suffix("").parts
        self.name = ".".join(parts)

    def find_spec(self, fullname, path, target=None):  # type: ignore[no-untyped-def]
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.mutant.module, loader=self)

    def create_module(self, spec):  # type: ignore[no-untyped-def]
        return None

    def exec_module(self, module) -> None:  # type: ignore[no-untyped-def]
        exec(compile(changed(self.mutant), str(self.mutant.module), "exec"), module.__dict__)


def tests_of(module: Path) -> list[str]:
    """The tests of a module, then those of its package as a whole, then the others of it, then of its users."""
    folder = UNIT / module.parent.relative_to(PACKAGE)
    own = [path for path in (folder / f"test_{module.stem}.py", folder / module.stem) if path.exists()]
    whole = [path for path in [folder / "whole"] if path.exists()]
    others = [path for path in sorted(folder.glob("test_*.py")) if path not in own]
    users = [UNIT.parent / name for start in ELSEWHERE for name in ELSEWHERE[start] if module.stem.startswith(start)]
    return [str(path) for path in (*own, *whole, *others, *users) if path.exists()]


def run(mutant: Mutant | None, tests: list[str]) -> str:
    """What became of a mutant: killed, out of time, or survived; of none, the tests as they are."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        if mutant is not None:
            sys.meta_path.insert(0, Changed(mutant))
        import pytest

        try:
            code = pytest.main([*OPTIONS, *tests])
        except BaseException:
            code = 1
        os._exit(int(code))
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return "survived" if status == 0 else "killed"
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "out of time"


def became_of(mutant: Mutant) -> str:
    """What became of a mutant, by the tests of its module."""
    return run(mutant, tests_of(mutant.module))


def chosen(arguments: argparse.Namespace) -> list[Mutant]:
    """The mutants to be run: drawn at random, or those that survived last time."""
    modules = []
    for name in arguments.modules or FOLDERS:
        path = PACKAGE / name
        modules += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    mutants = [mutant for module in modules for mutant in mutants_of(module)]
    if arguments.again:
        lines = arguments.again.read_text(encoding="utf-8").splitlines()
        known = {line.removeprefix("survived ") for line in lines if line.startswith("survived ")}
        return [mutant for mutant in mutants if str(mutant) in known]
    drawn = random.Random(arguments.seed).sample(mutants, min(arguments.number, len(mutants)))
    return sorted(drawn)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many run at a time")
    parser.add_argument("--again", type=Path, metavar="FILE")
    parser.add_argument("--at-least", type=float, default=0.85, help="the share that must be killed")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    # Whatever does not depend on a module here is imported once, for all of them.
    import hypothesis  # noqa: F401
    import pandas  # noqa: F401
    import polars  # noqa: F401
    import pytest  # noqa: F401
    import scipy.integrate
    import scipy.optimize
    import scipy.stats  # noqa: F401
    import sklearn.datasets
    import sklearn.naive_bayes  # noqa: F401

    assert not any(name.startswith("tallybayes") for name in sys.modules)
    counted: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    mutants = chosen(arguments)
    for module in {mutant.module for mutant in mutants}:
        if run(None, tests_of(module)) != "survived":
            sys.exit(f"the tests of {module.relative_to(PACKAGE)} fail as it is, or take more than {SECONDS:.0f} s")
        break
    with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
        for mutant, became in zip(mutants, pool.imap(became_of, mutants), strict=True):
            counted[str(mutant.module.relative_to(PACKAGE))][became] += 1
            sys.stdout.write(f"{became} {mutant}\n")
            sys.stdout.flush()
    killed = total = 0
    for name, found in sorted(counted.items()):
        n = sum(found.values())
        total, killed = total + n, killed + n - found["survived"]
        sys.stdout.write(f"{name:45} {n - found['survived']:4} of {n:4}\n")
    sys.stdout.write(f"killed: {killed} of {total}, {killed / max(total, 1):.1%}\n")
    return int(killed < arguments.at_least * total)


if __name__ == "__main__":
    sys.exit(main())
