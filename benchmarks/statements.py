"""How large the package is: the statements in its syntax trees, docstrings aside. `python benchmarks/statements.py`."""

import ast
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "tallybayes"


def statements(path):
    """The number of statements of a file; a docstring, or any other string on a line of its own, is none."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return sum(not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)) for n in found)


if __name__ == "__main__":
    folders = Counter()
    for path in PACKAGE.rglob("*.py"):
        inside = path.relative_to(PACKAGE).parts
        folders["/".join(inside[:-1]) or "."] += statements(path)
    for folder, number in sorted(folders.items()):
        print(f"{number:6} {folder}")
    print(f"{sum(folders.values()):6} in all")
