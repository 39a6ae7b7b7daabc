"""The oldest versions that pyproject.toml allows, as constraints for pip: what `make test-oldest` installs."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
for requirement in (*project["dependencies"], *extras["cli"], *extras["plot"], *extras["spark"], *extras["test"]):
    if ">=" in requirement:
        sys.stdout.write(requirement.replace(">=", "==") + "\n")
