"""`python -m tallybayes` is the command `tally`."""

import sys

from tallybayes.apps.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
