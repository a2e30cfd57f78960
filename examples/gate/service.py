"""A shop; VERSION names the release that responds.

VERSION=1.4 uvicorn service:app --port 9001
"""

import asyncio
import itertools
import os

from fastapi import FastAPI
from pydantic import BaseModel

VERSION = os.environ.get("VERSION", "dev")
REPORT_S = 1.0

app = FastAPI()
order_numbers = itertools.count(1)


class Order(BaseModel):
    """What a customer buys."""

    item: int
    quantity: int = 1


@app.get("/healthz")
async def health() -> dict[str, str]:
    """Respond while the shop can serve."""
    return {"status": "ok"}


@app.get("/items/{item}")
async def read_item(item: int) -> dict[str, int | str]:
    """Return an item, and the release."""
    return {"item": item, "version": VERSION}


@app.post("/orders", status_code=201)
async def buy(order: Order) -> dict[str, int]:
    """Take an order."""
    return {"order": next(order_numbers), "item": order.item, "quantity": order.quantity}


@app.get("/reports/{year}")
async def report(year: int) -> dict[str, int | str]:
    """Return a report, which takes a second."""
    await asyncio.sleep(REPORT_S)
    return {"year": year, "version": VERSION}
