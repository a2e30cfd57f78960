"""Log in once, then read the list and one item, as Locust plays it: locust -f locustfile.py."""

from locust import FastHttpUser, between, task


class Shopper(FastHttpUser):
    """Visitor of the shop."""

    host = "http://localhost:8081"
    wait_time = between(0.1, 0.5)

    def on_start(self) -> None:
        """Log in."""
        response = self.client.post("/login", json={"user": "ada", "password": "pw-ada"})
        self.headers = {"Authorization": "Bearer " + response.json()["token"]}

    @task
    def read(self) -> None:
        """Read the list, and the first item of it."""
        item = self.client.get("/items", headers=self.headers).json()["items"][0]["id"]
        self.client.get(f"/items/{item}", headers=self.headers, name="/items/[id]")
