"""``python -m qdsim``: the command line, as ``qdsim`` is."""

import sys

from qdsim.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
