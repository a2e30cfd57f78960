"""The file that is served: five MiB, created once."""

import tempfile
from pathlib import Path

SIZE = 5 << 20
PATH = Path(tempfile.gettempdir()) / "weir-framework-choice.bin"

if not PATH.exists() or PATH.stat().st_size != SIZE:
    part = PATH.with_suffix(".part")
    part.write_bytes(bytes(range(256)) * (SIZE // 256))
    part.rename(PATH)
