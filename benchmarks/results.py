"""Measures what RESULTS.md has again, in one go: between a command and its end stands what the command said.

Run it with ``python benchmarks/results.py [name …]``: all commands in the order of the file (an hour or more, with
nothing else running), or those that begin so ("text", "spam speed"). The rest of RESULTS.md is left as it is: read it
again, it quotes the tables. A command that fails leaves its old figures in place, is named at the end, and makes the
exit code 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "RESULTS.md"
MEASURED = re.compile(r"(<!-- python benchmarks/(\w+)\.py ?([^\n]*?) -->\n)(.*?)<!-- end -->\n", re.DOTALL)


def said(name: str, arguments: list[str]) -> str:
    """What a benchmark printed, as part of a page."""
    command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return "\n" + re.sub(r"\n{3,}", "\n\n", printed).strip() + "\n\n"


def main(wanted: list[str]) -> int:
    failed = []
    for mark, name, arguments, before in MEASURED.findall(RESULTS.read_text()):
        if wanted and not any(f"{name} {arguments}".startswith(one) for one in wanted):
            continue
        start = time.perf_counter()
        try:
            now = said(name, arguments.split())
        except subprocess.CalledProcessError:
            failed.append(f"{name} {arguments}")
        else:
            RESULTS.write_text(RESULTS.read_text().replace(mark + before, mark + now))
        print(f"{name} {arguments}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    for one in failed:
        print(f"{one} failed: its figures are older than the rest", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
