"""The three steps of shop.hurl with Locust's first client, which is that of requests."""

from locust import HttpUser, constant, task


class Shopper(HttpUser):
    """User that repeats the steps without think time."""

    wait_time = constant(0)

    @task
    def shop(self) -> None:
        """Log in, read the items and order one."""
        login = self.client.post("/shop/login", json={"user": "bob", "password": "x"})
        token = {"Authorization": f"Bearer {login.json()['token']}"}
        items = self.client.get("/shop/items", headers=token)
        item = items.json()["items"][7]["id"]
        with self.client.post(
            f"/shop/orders/{item}", json={"item": item}, headers=token, name="/shop/orders", catch_response=True
        ) as order:
            if order.json()["status"] != "ok":
                order.failure("not ok")
