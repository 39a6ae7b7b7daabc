"""The shell completes commands, options and file names, as its user would see it."""

import os
import pty
import re
import select
import shutil
import time

import pytest

from tallybayes.apps.cli.main import main

pytestmark = pytest.mark.slow


LINES = {
    "tally evalu": "tally evaluate",
    "tally fit --tar": "tally fit --target",
    "tally fit peng": "tally fit penguins.csv",
    "tally predict model.tally peng": "tally predict model.tally penguins.csv",
    "tally predict model.tally x.csv -o peng": "-o penguins.csv",
    "tally fit x.csv --like peng": "--like penguins.csv",
    "tally report model.tally --data peng": "--data penguins.csv",
    "tally merge a.tally peng": "tally merge a.tally penguins.csv",
    "tally spam check lett": "tally spam check letters/",
    "tally spam learn --ham letters/fi": "--ham letters/first.mbox",
    "tally spam learn --ham a letters/fi": "--ham a letters/first.mbox",
    "tally spam learn --ham a b letters/fi": "--ham a b letters/first.mbox",
    "tally spam learn --ham a b --spam c letters/fi": "--spam c letters/first.mbox",
    "tally spam learn --ham a b --spa": "--ham a b --spam",
}


def completed(shell, lines, folder):
    """What an interactive shell shows of each line after the key that asks for completion."""
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover - it becomes the shell
        os.chdir(folder)
        os.environ.update(HOME=str(folder), TERM="dumb", PS1="> ", ZDOTDIR=str(folder), COLUMNS="200")
        os.execvp(shell, [shell, "-i"])

    def shown(until, quiet):
        """What is shown, until some text and then nothing more comes for a while."""
        text, end, last = "", time.monotonic() + 20, time.monotonic()
        while time.monotonic() < end and (until not in text or time.monotonic() - last < quiet):
            if select.select([terminal], [], [], 0.02)[0]:
                text, last = text + os.read(terminal, 4096).decode(errors="replace"), time.monotonic()
        return re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]|[\r\x07]", "", text)

    try:
        os.write(terminal, b"echo rea''dy\n")
        shown("ready\r", 0.3)
        found = {}
        for line in lines:
            os.write(terminal, f"{line}\t".encode())
            found[line] = shown(line[-3:], 0.3)
            os.write(terminal, b"\x15")  # Ctrl-U: the line is emptied
            shown("", 0.1)
        return found
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_words_are_completed(shell, tmp_path, monkeypatch, capsys):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "penguins.csv").write_text("x,y\n")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "first.mbox").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ZSH", "ZSH_CUSTOM", "BASH_ENV"):
        monkeypatch.delenv(name, raising=False)
    assert main(["--install-completion", "--shell", shell]) == 0
    if shell == "zsh":
        with open(tmp_path / ".zshrc", "a") as file:
            file.write("autoload -Uz compinit && compinit -u\n")
    found = completed(shell, LINES, tmp_path)
    assert {line: expected for line, expected in LINES.items() if expected not in found[line]} == {}, found
