"""The pages of the command run: every line after a dollar sign, in one folder, with the output below it."""

import doctest
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from tallybayes.apps.cli.main import main

CHAPTERS = [Path(__file__).parent / name for name in ("quick-start.md", "command-line.md", "spam-filter.md")]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(chapter):
    """Every command, and what it writes."""
    for block in re.findall(r"```console\n(.*?)```", chapter.read_text(encoding="utf-8"), flags=re.DOTALL):
        for part in re.split(r"^\$ ", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            yield command, expected


def run(command, monkeypatch):
    """What a command writes, to either stream: of `tally`, `head`, `python -c`, with |, < and >, in this process."""
    command, _, file = command.partition(" > ")
    written = b""
    for part in command.split(" | "):
        part, _, given = part.partition(" < ")
        written = Path(given).read_bytes() if given else written
        words = shlex.split(part)
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(written)))
            patched.setattr(sys, "stdout", out)
            patched.setattr(sys, "stderr", out)
            if words[0] == "tally":
                main(words[1:])
            elif words[0] == "head":
                text = Path(words[2]).read_text() if len(words) > 2 else written.decode()
                out.write("".join(text.splitlines(keepends=True)[: int(words[1].removeprefix("-"))]))
            else:
                exec(words[2], {})
        written = out.buffer.getvalue()
    if file:
        Path(file).write_bytes(written)
        return ""
    return written.decode()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_the_chapter_shows_what_happens(chapter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TALLY_SPAM_STORE", "filter.sqlite")
    shown = list(examples(chapter))
    assert len(shown) > 4
    wrong = []
    for command, expected in shown:
        found = run(command, monkeypatch)
        if not doctest.OutputChecker().check_output(expected, found, FLAGS):
            wrong.append(f"$ {command}\n{found}")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
