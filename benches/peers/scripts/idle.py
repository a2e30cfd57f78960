"""Users that read the items once and then think, for the memory that a user takes."""

import weir


class Idle(weir.User):
    """User with an hour between its tasks."""

    think = "1h"

    @weir.task
    async def look(self) -> None:
        """Read the items."""
        await self.get("/shop/items")
