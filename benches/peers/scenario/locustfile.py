"""The three steps of shop.hurl with Locust's faster client."""

from locust import FastHttpUser, constant, task


class Shopper(FastHttpUser):
    """User that repeats the steps without think time."""

    wait_time = constant(0)

    @task
    def shop(self) -> None:
        """Log in, read the items and order one."""
        with self.client.post("/shop/login", json={"user": "bob", "password": "x"}, catch_response=True) as login:
            if login.status_code != 200:
                login.failure("status")
                return
            token = {"Authorization": f"Bearer {login.json()['token']}"}
        with self.client.get("/shop/items", headers=token, catch_response=True) as items:
            if items.status_code != 200:
                items.failure("status")
                return
            item = items.json()["items"][7]["id"]
        with self.client.post(
            f"/shop/orders/{item}", json={"item": item}, headers=token, name="/shop/orders", catch_response=True
        ) as order:
            if order.status_code != 200 or order.json()["status"] != "ok":
                order.failure("not ok")
