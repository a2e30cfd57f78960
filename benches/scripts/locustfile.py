"""Repeated GETs with Locust's faster client."""

from locust import FastHttpUser, constant, task


class Visitor(FastHttpUser):
    """User that sends the next request right after a response."""

    wait_time = constant(0)

    @task
    def get(self) -> None:
        """Get the only page."""
        self.client.get("/")
