"""Flask: a JSON schema by flask-expects-json; rejects with 400."""

from flask import Flask, Response, g, jsonify, send_file
from flask_expects_json import expects_json
from static_file import PATH

TEXT = {"type": "string", "minLength": 1}
ADDRESS = {
    "type": "object",
    "properties": {
        "street": TEXT,
        "city": TEXT,
        "zip": {"type": "string", "minLength": 3},
        "country": {"type": "string", "minLength": 2, "maxLength": 2},
    },
    "required": ["street", "city", "zip", "country"],
}
CUSTOMER = {
    "type": "object",
    "properties": {"name": TEXT, "email": {"type": "string", "minLength": 3}, "address": ADDRESS},
    "required": ["name", "email", "address"],
}
ITEM = {
    "type": "object",
    "properties": {
        "sku": TEXT,
        "name": {"type": "string"},
        "quantity": {"type": "integer", "minimum": 1},
        "price": {"type": "number", "minimum": 0},
    },
    "required": ["sku", "name", "quantity", "price"],
}
ORDER = {
    "type": "object",
    "properties": {
        "number": TEXT,
        "customer": CUSTOMER,
        "items": {"type": "array", "items": ITEM},
        "paid": {"type": "boolean"},
        "note": {"type": ["string", "null"]},
    },
    "required": ["number", "customer", "items", "paid"],
}

app = Flask(__name__)


@app.post("/validate")
@expects_json(ORDER)
def validate() -> Response:
    return jsonify(total=sum(item["quantity"] * item["price"] for item in g.data["items"]))


@app.get("/static")
def static_data() -> Response:
    return send_file(PATH)
