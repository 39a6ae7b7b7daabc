"""The data sets that lie beside the repository; tests that need one are skipped, with this reason, where it is not."""

import os
from pathlib import Path

import pytest

# Another folder, or none to see what is skipped: TALLYBAYES_DATA=nowhere make test
DATA = Path(os.environ.get("TALLYBAYES_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def needs(*names: str) -> pytest.MarkDecorator:
    """The mark of tests that read data sets: folders or files of `DATA`."""
    missing = [name for name in names if not (DATA / name).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"{' and '.join(missing)} is not in {DATA}")
