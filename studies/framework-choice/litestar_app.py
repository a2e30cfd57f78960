"""Litestar: msgspec structs in the signature; rejects with 400."""

from typing import Annotated

from litestar import Litestar, get, post
from litestar.response import File
from msgspec import Meta, Struct
from static_file import PATH

Text = Annotated[str, Meta(min_length=1)]


class Address(Struct):
    street: Text
    city: Text
    zip: Annotated[str, Meta(min_length=3)]
    country: Annotated[str, Meta(min_length=2, max_length=2)]


class Customer(Struct):
    name: Text
    email: Annotated[str, Meta(min_length=3)]
    address: Address


class Item(Struct):
    sku: Text
    name: str
    quantity: Annotated[int, Meta(gt=0)]
    price: Annotated[float, Meta(ge=0)]


class Order(Struct):
    number: Text
    customer: Customer
    items: list[Item]
    paid: bool
    note: str | None = None


@post("/validate", status_code=200)
async def validate(data: Order) -> dict[str, float]:
    return {"total": sum(item.quantity * item.price for item in data.items)}


@get("/static")
async def static() -> File:
    return File(PATH)


app = Litestar([validate, static], openapi_config=None)
