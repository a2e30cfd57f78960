"""One GET over and over, as Locust's faster client does it."""

from locust import FastHttpUser, constant, task


class Visitor(FastHttpUser):
    """A user who asks again as soon as there is an answer."""

    wait_time = constant(0)

    @task
    def get(self) -> None:
        """Ask for the one page there is."""
        self.client.get("/")
