"""`python -m weir` is the `weir` command."""

import sys

from weir._cli import main

sys.exit(main())
