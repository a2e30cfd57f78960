"""The three steps of shop.hurl as an async task of weir."""

import weir


class Shopper(weir.User):
    """User that repeats the steps without think time."""

    @weir.task
    async def shop(self) -> None:
        """Log in, read the items and order one."""
        login = await self.post("/shop/login", json={"user": "bob", "password": "x"})
        token = {"Authorization": f"Bearer {login.json()['token']}"}
        items = await self.get("/shop/items", headers=token)
        item = items.json()["items"][7]["id"]
        order = await self.post(f"/shop/orders/{item}", json={"item": item}, headers=token, name="/shop/orders")
        order.check(order.json()["status"] == "ok", "not ok")
