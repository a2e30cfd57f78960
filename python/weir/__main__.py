"""`python -m weir`: the `weir` command, which is a program of its own beside the package."""

import os
import sys
import sysconfig
from pathlib import Path


def program() -> Path:
    """Return the path of the program that was installed with this package.

    Raises:
        FileNotFoundError: There is none.
    """
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    folders = [Path(sysconfig.get_path("scripts", scheme)) for scheme in schemes]
    # `pip install --target` puts it beside the package.
    folders.append(Path(__file__).parents[1] / "bin")
    for folder in folders:
        if (folder / "weir").is_file():
            return folder / "weir"
    raise FileNotFoundError(f"no program 'weir' in {', '.join(map(str, folders))}; install weir-http again")


def main() -> None:
    """Replace this process with the program.

    Raises:
        SystemExit: The program is not installed.
    """
    try:
        path = program()
    except FileNotFoundError as error:
        sys.exit(f"weir: {error}")
    sys.stdout.flush()
    os.execv(path, [str(path), *sys.argv[1:]])


if __name__ == "__main__":
    main()
