"""What locustfiles import as `locust`, played by weir's own loop.

- `stand_in`: the modules `locust...` while a locustfile is loaded
- `users`, `task_set`: classes of users and sets of tasks; `wait_time`: waits between tasks
- `client`: `self.client`; `event`, `environment`: hooks, and what they get
- `shape`: number of users over time; `arguments`: arguments of the command line
- `script`: a locustfile as the generator asks for it; `greenlets`: users as greenlets
"""

__all__: list[str] = []
