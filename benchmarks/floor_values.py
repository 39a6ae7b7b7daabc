"""The figures floors.py compares with, as measured: paste what `floors.py --record` prints. A floor is half of one."""

RECORDED: dict[str, float] = {}
