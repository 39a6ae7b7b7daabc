"""Help comes at once, and is worth reading."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tallybayes as tb
from tallybayes.apps.cli.help_text import COMMANDS, overview
from tallybayes.apps.cli.main import main
from tallybayes.apps.cli.runner import run

HERE = {**os.environ, "PYTHONPATH": str(Path(tb.__file__).parents[1]), "COLUMNS": "80"}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("words", ["--help", "fit --help", "predict --help", "--version"])
def test_help_imports_nothing_heavy(words):
    code = (
        "import sys; from tallybayes.apps.cli.main import main\n"
        f"main({words.split()!r}); print('loaded', *{{name.split('.')[0] for name in sys.modules}})"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=HERE, text=True, check=True)
    loaded = set(ran.stdout.splitlines()[-1].split()[1:])
    assert not loaded & {"numpy", "scipy", "sklearn", "pyarrow", "narwhals", "pandas", "sqlite3", "markdown_it"}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("width", [80, 97, 120])
def test_what_is_written_by_hand_is_what_the_libraries_show(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [line.rstrip() for line in overview().splitlines()] == [line.rstrip() for line in shown.splitlines()]
    assert main(["--help"]) == main(["-h"]) == 0
    assert capsys.readouterr().out == 2 * f"{overview()}\n"


def test_a_narrow_terminal_has_narrow_help(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 50


def used(*words):
    """The processor's time of a fresh Python, in seconds."""
    before = os.times()
    subprocess.run([sys.executable, *words], capture_output=True, env=HERE, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


@pytest.mark.slow
def test_help_comes_at_once():
    # 200 ms are promised on a machine with nothing else to do. It is measured beside the libraries that show the help
    # of commands, in the processor's time, so that a busy machine changes little: about a quarter.
    help_takes, libraries_take = zip(
        *(
            (used("-m", "tallybayes", "--help"), used("-c", "import cyclopts, rich.console, rich.table"))
            for _ in range(3)
        ),
        strict=True,
    )
    assert min(help_takes) < 0.6 * min(libraries_take)
    assert min(help_takes) < 1


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "spam"])  # which has commands of its own
def test_every_command_has_help_with_examples(name, done):
    shown = done(f"{name} --help")
    lines = shown.splitlines()
    assert lines[0].startswith(f"Usage: tally {name}")
    assert len([line for line in lines if re.match(rf"  .*tally {name} ", line)]) >= 2
    assert all(len(line) <= 80 for line in lines)
    # Every option is explained, and no line of the text above them was broken.
    options = re.findall(r"^│ \*? *(--?[a-z-]+)(?: -\w)?(?: [A-Z.]+)?  +(\S?)", shown, flags=re.MULTILINE)
    assert options
    assert all(said for _, said in options)
    text = shown.partition("╭")[0].splitlines()[2:]
    assert all(line == line.rstrip() for line in text)


def test_the_whole_is_listed(done):
    shown = done("--help")
    for name, line in COMMANDS.items():
        assert re.search(rf"│ {name} +{re.escape(line[:20])}", shown)
    assert "Exit codes:\n0 success" in shown
    assert "--install-completion" in shown
    assert done("--version") == f"{tb.__version__}\n"


def test_python_runs_it_too():
    ran = subprocess.run([sys.executable, "-m", "tallybayes", "--version"], capture_output=True, env=HERE, text=True)
    assert ran.stdout == f"{tb.__version__}\n"
