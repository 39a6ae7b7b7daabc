"""Would the tests notice? One operator, comparison or constant is changed, and the tests that run its line are run.

``make mutate``, or ``python tests/mutate.py [MODULE ...] [--number 300] [--seed 0] [--jobs 2] [--again FILE]``:

MODULE is a file or folder of the package, such as ``beliefs`` or ``families/poisson.py``. Of all changes that could be
made there, a number is drawn at random (``--number 0``: all of them). All quick tests are run once, to know which of
them run which lines; then every change is made in a process of its own, in memory: no file is touched. A change that
some test fails under, or that takes many times as long, is killed; what survives is printed, and is either the same
program in other words or a test that is missing. ``--again`` runs only what survived according to such an output.
"""

import argparse
import ast
import functools
import gc
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import types
from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "tallybayes"
FOLDERS = ["families", "distributions"]
# Where the tests are that may notice: of what uses families and distributions, and the examples of these.
TESTS = ["src/tallybayes/families", "src/tallybayes/distributions", "tests/laws", "tests/reference", "tests/textbook"]
TESTS += [
    f"tests/unit/{part}"
    for part in ("distributions", "families", "estimation", "evaluation", "models", "statistics", "tally")
]
OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
SECONDS = 20.0  # of the tests that are run for one change, by the time they took as it was
PATIENCE = 5  # times as long, and ten seconds, is a change for the worse
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


NOTHING = -1  # the number of no change at all: a module that is only put in anew, under which no test may fail


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
    if mutant.number != NOTHING:
        node = list(places(tree))[mutant.number]
        node.__dict__.update(vars(otherwise(node)))  # type: ignore[arg-type]
    return ast.fix_missing_locations(tree)


class Ran(NamedTuple):
    """What was found when all tests were run: the seconds of each, and which of them run each line."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]  # by file

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that run a line, or any of its module where that is run when it is imported; the shortest first."""
        lines = self.lines.get(str(mutant.module), {})
        names = lines.get(mutant.line) or sorted({name for found in lines.values() for name in found})
        chosen, total = [], 0.0
        for name in sorted(names, key=lambda name: (mutant.module.stem not in name, self.seconds[name])):
            total += self.seconds[name]
            if total < (SECONDS if mutant.number != NOTHING else 2.0):
                chosen.append(name)
        return chosen


def fails(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Whether a test fails."""
    from _pytest.runner import runtestprotocol

    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def trace(items: list[pytest.Item], to: str) -> None:
    """Run tests as they are, and write down how long each takes and which lines it runs."""
    from coverage import Coverage

    coverage = Coverage(data_file=None, config_file=False, include=[f"{PACKAGE / folder}/*" for folder in FOLDERS])
    seconds: dict[str, float] = {}
    coverage.start()
    for item, following in zip(items, [*items[1:], None], strict=True):
        coverage.switch_context(item.nodeid)
        begin = time.perf_counter()
        if not fails(item, following):
            seconds[item.nodeid] = time.perf_counter() - begin
    coverage.stop()
    data = coverage.get_data()
    lines = {
        name: {
            line: [test for test in tests if test in seconds] for line, tests in data.contexts_by_lineno(name).items()
        }
        for name in data.measured_files()
    }
    Path(to).write_text(json.dumps([seconds, lines]), encoding="utf-8")


def in_child(work: Any, *arguments: Any) -> int:
    """The number of a process that does some work and ends: with 0 if it is done, with 1 if it says so or fails."""
    child = os.fork()
    if child:
        return child
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    try:
        code = int(bool(work(*arguments)))
    except BaseException as error:
        code = 1
        if work is trace:
            say(f"{error!r}")
    os._exit(code)


def run_all(items: list[pytest.Item], jobs: int) -> Ran:
    """Run all tests as they are, dealt by file to several processes."""
    files = sorted({item.nodeid.partition("::")[0] for item in items})
    random.Random(0).shuffle(files)
    hand = {name: place % jobs for place, name in enumerate(files)}
    ran = Ran({}, defaultdict(lambda: defaultdict(list)))
    with tempfile.TemporaryDirectory() as folder:
        children = {}
        for job in range(jobs):
            dealt = [item for item in items if hand[item.nodeid.partition("::")[0]] == job]
            children[in_child(trace, dealt, f"{folder}/{job}")] = f"{folder}/{job}"
        for child, path in children.items():
            os.waitpid(child, 0)
            seconds, lines = json.loads(Path(path).read_text(encoding="utf-8"))
            ran.seconds.update(seconds)
            for name, found in lines.items():
                for line, tests in found.items():
                    ran.lines[name][int(line)] += tests
    return ran


# ---- Changing what is imported ----------------------------------------------------------------------------------


def parts_of(value: Any) -> list[Any]:
    """What is inside something that wraps functions: properties, methods of classes, decorated ones."""
    inside = [getattr(value, name, None) for name in ("__func__", "fget", "func", "__wrapped__")]
    return [part for part in inside if part is not None]


def put_in(old: Any, new: Any, where: str) -> None:
    """Make a thing of a module do what another one does, which was made of the changed source."""
    if isinstance(old, types.FunctionType) and isinstance(new, types.FunctionType):
        if old.__code__.co_freevars == new.__code__.co_freevars:
            old.__code__ = new.__code__
        old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    if isinstance(old, type):
        if old.__module__ != where:
            return
        for name, value in list(vars(new).items()):
            if name in ("__dict__", "__weakref__", "__doc__", "__module__", "__slots__", "__abstractmethods__"):
                continue
            if is_plain(value):
                if not same(vars(old).get(name), value):
                    setattr(old, name, value)
            elif name in vars(old):
                put_in(vars(old)[name], value, where)
        return
    for one, other in zip(parts_of(old), parts_of(new), strict=False):
        put_in(one, other, where)
    if hasattr(old, "cache_clear"):
        old.cache_clear()


def is_plain(value: Any) -> bool:
    """Whether a value is of numbers, words and arrays alone, and not of classes that are made twice."""
    if isinstance(value, tuple | frozenset | list | set):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return is_plain(list(value)) and is_plain(list(value.values()))
    return isinstance(value, int | float | str | bytes | type(None)) or type(value).__module__ == "numpy"


def same(one: Any, other: Any) -> bool:
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False


def change(mutant: Mutant) -> None:
    """Change a module that is imported, and all who have its functions."""
    name = ".".join(mutant.module.relative_to(PACKAGE.parent).with_suffix("").parts)
    module = importlib.import_module(name)
    made = types.ModuleType(name)
    vars(made).update({key: value for key, value in vars(module).items() if key.startswith("__")})
    registry: dict[str, Any] = sys.modules["tallybayes._utils.frozen_value"]._CLASSES
    known = dict(registry)  # classes that are made anew are not those of files
    exec(compile(changed(mutant), str(mutant.module), "exec"), vars(made))
    registry.update(known)
    for key, value in vars(made).items():
        if key.startswith("__") or key not in vars(module):
            continue
        old = vars(module)[key]
        if isinstance(value, types.FunctionType | type | functools._lru_cache_wrapper) or hasattr(value, "__wrapped__"):
            if getattr(value, "__module__", None) == name:
                put_in(old, value, name)
        elif is_plain(value) and not same(old, value):
            setattr(module, key, value)


def survives_not(mutant: Mutant, items: list[pytest.Item]) -> bool:
    """Whether a test fails under a change."""
    change(mutant)
    for item, following in zip(items, [*items[1:], None], strict=True):
        if fails(item, following):
            if mutant.number == NOTHING:
                say(f"fails as it is: {item.nodeid}")
            return True
    return False


class Judge:
    """Runs every change against its tests, several at a time."""

    def __init__(self, mutants: list[Mutant], jobs: int) -> None:
        self.mutants, self.jobs = mutants, jobs
        self.became: dict[Mutant, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running the tests."""
        by_name = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()
        ran = run_all(session.items, self.jobs)
        say(f"{len(ran.seconds)} tests of {len(session.items)}, {sum(ran.seconds.values()):.0f} s")
        modules = sorted({mutant.module for mutant in self.mutants})
        waiting = [*reversed(self.mutants), *(Mutant(module, NOTHING, 0, "as it is") for module in modules)]
        running: dict[int, tuple[Mutant, float]] = {}
        while waiting or running:
            while waiting and len(running) < self.jobs:
                mutant = waiting.pop()
                names = ran.tests_of(mutant)
                # In the order of the files, so that what a module's tests share is made once.
                places = {name: place for place, name in enumerate(dict.fromkeys(n.partition("::")[0] for n in names))}
                names.sort(key=lambda name: places[name.partition("::")[0]])
                end = time.monotonic() + PATIENCE * sum(ran.seconds[name] for name in names) + 10
                child = in_child(survives_not, mutant, [by_name[name] for name in names])
                running[child] = mutant, end
            time.sleep(0.01)
            for child, (mutant, end) in list(running.items()):
                found, status = os.waitpid(child, os.WNOHANG)
                if not found and time.monotonic() > end:
                    os.killpg(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                elif not found:
                    continue
                became = "out of time" if not found else "killed" if status else "survived"
                del running[child]
                if mutant.number != NOTHING:
                    self.became[mutant] = became
                    say(f"{became} {mutant}")
                elif became != "survived":
                    pytest.exit(f"the tests fail as it is, or take too long: {mutant}", 1)
        return True


class NoThreads(types.ModuleType):
    """Stands for a library whose threads would not be there after a fork: tests that use it fail, and are left out."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda *_, **__: None})


def say(line: str) -> None:
    """To where the caller looks, not to where pytest writes."""
    os.write(int(os.environ["MUTATE_SAYS"]), (line + "\n").encode())


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
    number = min(arguments.number or len(mutants), len(mutants))
    return sorted(random.Random(arguments.seed).sample(mutants, number))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many run at a time")
    parser.add_argument("--again", type=Path, metavar="FILE")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="where to look for tests that may notice")
    parser.add_argument("--at-least", type=float, default=0.85, help="the share that must be killed")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    os.environ |= {"MUTATE_SAYS": str(os.dup(1)), "COVERAGE_CORE": "ctrace"}
    sys.modules["polars"] = NoThreads("polars")
    judge = Judge(chosen(arguments), arguments.jobs)
    code = pytest.main([*OPTIONS, *arguments.tests], plugins=[judge])
    if len(judge.became) < len(judge.mutants):
        return int(code) or 1
    counted: dict[str, list[str]] = defaultdict(list)
    for mutant, became in judge.became.items():
        counted[str(mutant.module.relative_to(PACKAGE))].append(became)
    for name, found in sorted(counted.items()):
        say(f"{name:45} {len(found) - found.count('survived'):4} of {len(found):4}")
    killed, total = sum(b != "survived" for b in judge.became.values()), len(judge.became)
    say(f"killed: {killed} of {total}, {killed / max(total, 1):.1%}")
    return int(killed < arguments.at_least * total)


if __name__ == "__main__":
    sys.exit(main())
