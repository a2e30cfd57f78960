"""What all queues share: where Redis is, and how a job says that it is done."""

import os

PORT = os.environ["QUEUES_PORT"]
URL = f"redis://127.0.0.1:{PORT}/0"
_file = os.open(os.environ["QUEUES_MARKS"], os.O_WRONLY | os.O_APPEND)


def mark() -> None:
    """A microsecond; nobody has to ask Redis or a log."""
    os.write(_file, b".")
