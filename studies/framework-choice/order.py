"""An order as pydantic models, for the frameworks that take them."""

from pydantic import BaseModel, Field


class Address(BaseModel):
    street: str = Field(min_length=1)
    city: str = Field(min_length=1)
    zip: str = Field(min_length=3)
    country: str = Field(min_length=2, max_length=2)


class Customer(BaseModel):
    name: str = Field(min_length=1)
    email: str = Field(min_length=3)
    address: Address


class Item(BaseModel):
    sku: str = Field(min_length=1)
    name: str
    quantity: int = Field(gt=0)
    price: float = Field(ge=0)


class Order(BaseModel):
    number: str = Field(min_length=1)
    customer: Customer
    items: list[Item]
    paid: bool
    note: str | None = None

    def total(self) -> float:
        return sum(item.quantity * item.price for item in self.items)
