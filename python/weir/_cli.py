"""The `weir` command: the same Rust function that cargo's binary calls."""

import signal
import sys

from weir import _weir


def main() -> int:
    """Run the command line of this process and return its exit code."""
    # Python's handler would only set a flag that nobody looks at while Rust runs. The command line has its own where
    # it has something to save; elsewhere Ctrl-C is to end the process. An ignored signal (nohup, `&`) stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _weir.cli(["weir", *sys.argv[1:]])
