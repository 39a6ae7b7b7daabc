"""Run the command `tally`: ``python -m tallybayes``."""

import sys

from tallybayes.apps.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
