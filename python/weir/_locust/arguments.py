"""Arguments of locustfiles: their own after `--`, and those of Locust as `parsed_options`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from weir._locust.event import Events

__all__ = ["LocustArgumentParser"]


class LocustArgumentParser(argparse.ArgumentParser):
    """Parser that locustfiles add arguments to."""

    def add_argument(self, *names: Any, **given: Any) -> Any:
        """Add an argument; an environment variable may have its value."""
        variable = given.pop("env_var", None)
        for key in ("include_in_web_ui", "is_secret", "is_required", "is_multiple"):
            given.pop(key, None)
        if variable and variable in os.environ and names and str(names[0]).startswith("-"):
            given["default"] = os.environ[variable]
            given.pop("required", None)
        return super().add_argument(*names, **given)


def parsed(events: Events, args: Sequence[str], given: dict[str, Any]) -> argparse.Namespace:
    """Parse the arguments of a locustfile; return them with the options that Locust itself has."""
    parser = LocustArgumentParser(prog="weir load -s FILE.py URL --", add_help=False, allow_abbrev=False)
    events.init_command_line_parser.fire(parser=parser)
    options = parser.parse_args(list(args))
    own = {
        "host": given["url"] or None,
        "num_users": given["users"] or 1,
        "users": given["users"] or 1,
        "spawn_rate": (given["users"] or 1) / given["ramp_up_s"] if given["ramp_up_s"] else float(given["users"] or 1),
        "run_time": given["duration_s"],
        "tags": list(given["tags"]) or None,
        "exclude_tags": list(given["exclude_tags"]) or None,
        "headless": True,
        "autostart": False,
        "master": False,
        "worker": False,
        "loglevel": "INFO",
        "logfile": None,
        "stop_timeout": 0,
        "reset_stats": False,
        "csv_prefix": None,
        "html_file": None,
        "json": False,
        "expect_workers": 1,
        "locustfile": "",
        "user_classes": [],
        "exit_code_on_error": 1,
        "processes": None,
    }
    for name, value in own.items():
        if not hasattr(options, name):
            setattr(options, name, value)
    return options
