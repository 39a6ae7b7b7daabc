"""Names the addresses of this repository in pyproject.toml, for packages that are built where it is public.

Nothing here knows where that is: the forge says so, in the variables that its workflows have. Run it before a build.
"""

import os
from pathlib import Path

ADDRESSES = {
    "Source": "",
    "Issues": "/issues",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Handbook": "/blob/main/docs/README.md",
}


def main() -> None:
    """Append [project.urls]."""
    repository = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    lines = ["", "[project.urls]", *(f'{name} = "{repository}{path}"' for name, path in ADDRESSES.items()), ""]
    with Path("pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main()
