"""`weir.start_load`: a load that goes on beside the program, and is changed while it runs."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import ParamSpec

from weir import _weir
from weir._errors import Interrupted, UsageError
from weir._load import load, load_form
from weir._run import Run

__all__ = ["StartedLoad", "start_load"]

_Arguments = ParamSpec("_Arguments")


class StartedLoad:
    """A load that goes on; made by `start_load`.

    A change holds from an instant shortly ahead, so that all threads and agents change together, and each method
    returns that instant, in seconds since the start of the load. Before the load has started, a method waits for its
    start. What was changed is in the result (`Run.changes`), with the stages that repeat it.

    As a context manager it stops the load at the end of the block, and waits for it. The load ends with the object.

    >>> with weir.start_load("http://localhost:8080/", rate=100, duration="10m") as load:
    ...     load.set_rate(200)
    >>> load.result().changes.stages
    '100/2.5s,200/0.1s'
    """

    def __init__(self, handle: _weir.StartedLoadHandle) -> None:
        """Take over a load; use `start_load`."""
        self._handle = handle

    def set_rate(self, per_s: float) -> float:
        """Set the rate of an open loop, in requests per second; it stays to the planned end.

        Returns:
            Time from which it holds, in seconds since the start of the load.

        Raises:
            UsageError: The load is a closed loop, the rate is invalid, or the load is over.
        """
        return self._handle.change("rate", _number("set_rate", per_s))

    def set_users(self, users: int) -> float:
        """Set the number of users, or connections, of a closed loop; it stays to the planned end.

        Returns:
            Time from which it holds, in seconds since the start of the load.

        Raises:
            UsageError: The load is an open loop or has fixed users, the number is invalid, or the load is over.
        """
        if isinstance(users, bool) or not isinstance(users, int) or not 0 < users < 1 << 53:
            raise UsageError(f"set_users: invalid number {users!r}; write a whole number from 1 on")
        return self._handle.change("users", users)

    def pause(self) -> float:
        """Pause the load: nothing starts until it goes on. Its clock goes on.

        Returns:
            Time from which it holds, in seconds since the start of the load.

        Raises:
            UsageError: It is paused already, or over.
        """
        return self._handle.change("pause")

    def resume(self) -> float:
        """Go on with the rate or the users from before the pause.

        Returns:
            Time from which it holds, in seconds since the start of the load.

        Raises:
            UsageError: It is not paused, or it is over.
        """
        return self._handle.change("resume")

    def stop(self) -> float:
        """Stop the load early: requests in flight are awaited, and the result is not that of an interruption.

        Returns:
            Time from which it holds, in seconds since the start of the load.

        Raises:
            UsageError: The load is over.
        """
        return self._handle.change("stop")

    @property
    def is_running(self) -> bool:
        """Whether the load goes on."""
        return self._handle.is_running()

    def result(self, timeout: float | None = None) -> Run:
        """Wait for the end of the load, and return its result; also more than once.

        Args:
            timeout: Longest time to wait, in seconds. Default: as long as the load takes.

        Returns:
            The result of the run.

        Raises:
            TimeoutError: The load goes on after this time.
            SetupError: The load could not start.
            Interrupted: Ctrl-C, detected in the main thread only; its `run` is what was measured.
        """
        if timeout is not None:
            timeout = _number("timeout", timeout)
        try:
            handle = self._handle.result(timeout)
        except KeyboardInterrupt:
            self._handle.end()
            handle = self._handle.result(None)
        if handle is None:
            raise TimeoutError(f"the load goes on after {timeout} s")
        run = Run._of(handle)
        if run.interrupted:
            raise Interrupted(run)
        return run

    def __enter__(self) -> "StartedLoad":
        """Return the load."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the load, and wait for its end; after an error at once."""
        if self.is_running:
            if kind is None:
                # It may have ended, or be stopping, by itself.
                with suppress(UsageError):
                    self.stop()
            else:
                self._handle.end()
        try:
            self._handle.result(None)
        except Exception:
            # What `result` raises is for those who ask for it; here the error of the block comes first.
            if kind is None:
                raise

    def __repr__(self) -> str:
        """Show the state."""
        return f"<StartedLoad {'running' if self.is_running else 'ended'}>"


def _number(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise UsageError(f"{name}: invalid number {value!r}; write a number from 0 on")
    return float(value)


def _with_arguments_of(
    example: Callable[_Arguments, Run],
) -> Callable[[Callable[..., StartedLoad]], Callable[_Arguments, StartedLoad]]:
    """Give a function the arguments of another, for readers and type checkers."""

    def change(function: Callable[..., StartedLoad]) -> Callable[_Arguments, StartedLoad]:
        signature = inspect.signature(example).replace(return_annotation=StartedLoad)
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return change


@_with_arguments_of(load)
def start_load(*args: object, **options: object) -> StartedLoad:
    """Start a load, and return at once; it goes on beside the program, which may change it.

    Takes the arguments of `load`, but classes of users.

    Returns:
        The load that goes on.

    Raises:
        TypeError: An argument is unknown.
        UsageError: A value is invalid, or two arguments conflict.

    >>> load = weir.start_load("http://localhost:8080/", rate=100, duration="10m", slo="p99<200ms")
    >>> load.set_rate(200)
    3.2
    >>> load.stop()
    8.7
    >>> load.result().changes.stages
    '100/3.2s,200/5.5s'
    """
    bound = inspect.signature(load).bind(*args, **options)
    bound.apply_defaults()
    form, command, script = load_form(bound.arguments, "weir.start_load")
    if script is not None:
        raise UsageError("start_load does not take classes of users; write a scenario, or weir.load")
    return StartedLoad(_weir.start_load(form, command))
