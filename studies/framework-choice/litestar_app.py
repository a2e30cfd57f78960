"""Litestar: msgspec structs in the signature; refuses with 400."""

from litestar import Litestar, get, post
from litestar.response import File
from order_structs import Order
from static_file import PATH


@post("/validate", status_code=200)
async def validate(data: Order) -> dict[str, float]:
    return {"total": data.total()}


@get("/static")
async def static() -> File:
    return File(PATH)


app = Litestar([validate, static], openapi_config=None)
