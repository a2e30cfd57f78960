"""aiohttp on its own server: marshmallow schemas by hand; rejects with 422."""

import json
import sys

from aiohttp import web
from marshmallow import Schema, ValidationError, fields
from marshmallow.validate import Length, Range
from static_file import PATH


class Address(Schema):
    street = fields.Str(required=True, validate=Length(min=1))
    city = fields.Str(required=True, validate=Length(min=1))
    zip = fields.Str(required=True, validate=Length(min=3))
    country = fields.Str(required=True, validate=Length(equal=2))


class Customer(Schema):
    name = fields.Str(required=True, validate=Length(min=1))
    email = fields.Str(required=True, validate=Length(min=3))
    address = fields.Nested(Address, required=True)


class Item(Schema):
    sku = fields.Str(required=True, validate=Length(min=1))
    name = fields.Str(required=True)
    quantity = fields.Int(required=True, validate=Range(min=1))
    price = fields.Float(required=True, validate=Range(min=0))


class Order(Schema):
    number = fields.Str(required=True, validate=Length(min=1))
    customer = fields.Nested(Customer, required=True)
    items = fields.List(fields.Nested(Item), required=True)
    paid = fields.Bool(required=True)
    note = fields.Str(load_default=None)


ORDER = Order()


async def validate(request: web.Request) -> web.Response:
    try:
        order = ORDER.loads(await request.text())
    except (ValidationError, json.JSONDecodeError) as error:
        return web.json_response({"errors": getattr(error, "messages", str(error))}, status=422)
    return web.json_response({"total": sum(item["quantity"] * item["price"] for item in order["items"])})


async def static(request: web.Request) -> web.FileResponse:
    return web.FileResponse(PATH)


app = web.Application()
app.add_routes([web.post("/validate", validate), web.get("/static", static)])

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
