"""`python -m weir`: the `weir` command."""

import sys

from weir._cli import main

if __name__ == "__main__":
    sys.exit(main())
