"""An order as msgspec structs, for the frameworks that take them."""

from typing import Annotated

from msgspec import Meta, Struct

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

    def total(self) -> float:
        return sum(item.quantity * item.price for item in self.items)
