"""How much of each folder the tests ran, lines and branches; it fails where the lower storeys have less than 95 %.

``make coverage``, or ``python tests/covered.py build/coverage.json`` after ``pytest --cov --cov-report=json:...``.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

PACKAGE = "src/tallybayes/"
REQUIRED = {"families", "distributions", "statistics", "estimation"}
LEAST = 0.95


def by_folder(report: dict) -> dict[str, tuple[int, int]]:
    """The numbers of lines and branches of each folder that were run, and that there are."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, file in report["files"].items():
        path = Path(name).as_posix().partition(PACKAGE)[2]
        summary = file["summary"]
        for part, total in (("covered_lines", "num_statements"), ("covered_branches", "num_branches")):
            found[Path(path).parent.as_posix()][0] += summary[part]
            found[Path(path).parent.as_posix()][1] += summary[total]
    return {folder: (run, total) for folder, (run, total) in found.items()}


def main() -> int:
    found = by_folder(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    short = []
    for folder, (run, total) in sorted(found.items()):
        share = run / max(total, 1)
        if folder in REQUIRED and share < LEAST:
            short.append(folder)
        mark = "  too little" if folder in short else "  at least 95 %" if folder in REQUIRED else ""
        sys.stdout.write(f"{folder:34} {run:6} of {total:6} {share:7.1%}{mark}\n")
    run, total = (sum(numbers) for numbers in zip(*found.values(), strict=True))
    sys.stdout.write(f"{'all':34} {run:6} of {total:6} {run / max(total, 1):7.1%}\n")
    return int(bool(short) or not found.keys() >= REQUIRED)


if __name__ == "__main__":
    sys.exit(main())
