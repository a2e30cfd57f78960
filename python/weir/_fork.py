"""Tells the extension of a fork, after which its threads are gone. Who starts threads there imports this."""

import os

from weir import _weir

os.register_at_fork(after_in_child=_weir.forked)
