"""Classes of users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from weir import _weir
from weir._locust.client import HttpSession
from weir._locust.exception import StopUser, UserEnd
from weir._locust.player import Player
from weir._locust.task_set import DefaultTaskSet
from weir._task import tasks_of
from weir._user_factory import HeadLines

__all__ = ["FastHttpUser", "HttpUser", "User", "play"]

_DEFAULTS = (
    ("User-Agent", f"weir/{_weir.__version__}"),
    ("Accept-Encoding", "gzip, deflate"),
    ("Accept", "*/*"),
    ("Connection", "keep-alive"),
)
"""Headers of the library requests; FastHttpUser has the first two."""


class UserMeta(type):
    """Class of users: it lists their tasks."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> UserMeta:
        """List the tasks of a class."""
        members["tasks"] = tasks_of(bases, members)
        members.setdefault("abstract", False)
        return super().__new__(cls, name, bases, members)


class User(metaclass=UserMeta):
    """User that does one task after the other."""

    tasks: ClassVar[list[Any]] = []
    abstract: ClassVar[bool] = True
    host: str | None = None
    min_wait: float | None = None
    max_wait: float | None = None
    wait_function: Any = None
    weight: float = 1
    fixed_count: int = 0
    _weir_player: Player

    def __init__(self, environment: Any) -> None:
        """Make a user of a run."""
        self.environment = environment
        if not hasattr(self, "_weir_player"):
            self._weir_player = Player(environment, seed=0, number=0)

    def on_start(self) -> None:
        """Prepare the user before its first task."""

    def on_stop(self) -> None:
        """Clean up after the last task."""

    def wait_time(self) -> float:
        """Return the wait after a task in seconds; none by default."""
        if self.min_wait is not None and self.max_wait is not None:
            return self._weir_player.random.randint(int(self.min_wait), int(self.max_wait)) / 1000
        return 0.0

    def wait(self) -> None:
        """Wait as after a task."""
        self._weir_player.main.switch(float(self.wait_time()))

    def stop(self, force: bool = False) -> bool:
        """End the user, when it is called by one of its tasks."""
        del force
        raise StopUser

    def context(self) -> dict[str, Any]:
        """Return what listeners of requests get of the user."""
        return {}

    @property
    def group(self) -> Any:
        """Reject greenlets beside the user's."""
        raise NotImplementedError("self.group: greenlets beside the users are not there in weir")


class HttpUser(User):
    """User with a client for HTTP in the manner of the library requests."""

    abstract = True
    pool_manager: Any = None
    client: HttpSession

    def __init__(self, environment: Any) -> None:
        """Make a user with its client."""
        super().__init__(environment)
        host = environment.host or self.host
        if host is None:
            raise ValueError(f"{type(self).__name__} has no host; write it in the class, or the URL after the file")
        defaults: Sequence[tuple[str, str]] = _DEFAULTS
        own: Any = ()
        if isinstance(self, FastHttpUser):
            defaults, own = _DEFAULTS[:2], self.default_headers or ()
        self._weir_player.headers = HeadLines(defaults, environment._given_headers).merged(own)
        self.client = HttpSession(host, user=self)
        self.client._is_fast = isinstance(self, FastHttpUser)


class FastHttpUser(HttpUser):
    """User with a client for HTTP in the manner of Locust's FastHttpUser."""

    abstract = True
    network_timeout: float = 60.0
    connection_timeout: float = 60.0
    max_redirects: int = 5
    max_retries: int = 1
    insecure: bool = True
    default_headers: Any = None
    concurrency: int = 10
    client_pool: Any = None
    proxy_host: str | None = None
    proxy_port: int | None = None

    def rest(self, method: str, url: str, headers: Any = None, **given: Any) -> Any:
        """Send a request of a JSON interface, for a `with` statement: the response has `js`."""
        return self.client._rest(method, url, headers, **given)

    def rest_(self, method: str, url: str, name: str | None = None, **given: Any) -> Any:
        """Send a request of a JSON interface whose address changes with each call."""
        return self.rest(method, url, name=name or f"{url.split('?', maxsplit=1)[0]}/?_", **given)


def play(user: User) -> None:
    """Play a user until it ends, and then its end."""
    player = user._weir_player
    try:
        _play_tasks(user, player)
        player.main.switch((False, None))
    except UserEnd:
        pass
    has_failed = False
    try:
        user.on_stop()
    except StopUser:
        pass
    except Exception as error:
        has_failed = True
        player.add_error(f"{type(user).__name__}.on_stop", error, user)
    player.main.switch((has_failed, None))


def _play_tasks(user: User, player: Player) -> None:
    """Play tasks until there is none left."""
    try:
        user.on_start()
    except StopUser:
        return
    except Exception as error:
        player.add_error(f"{type(user).__name__}.on_start", error, user)
        player.end_task(True, None)
        return
    try:
        DefaultTaskSet(user).run()
    except StopUser:
        player.end_task(False, None)
