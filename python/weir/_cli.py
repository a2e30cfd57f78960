"""Entry point of the `weir` command: the same Rust function as in cargo's binary."""

import signal
import sys

from weir import _weir


def main() -> int:
    """Run the command line of this process.

    Returns:
        The exit code.
    """
    # Python's handler only sets a flag that is not checked while Rust runs. Rust handles Ctrl-C where there are results
    # to save; elsewhere it ends the process. An ignored signal (nohup, `&`) stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _weir.cli(["weir", *sys.argv[1:]])
