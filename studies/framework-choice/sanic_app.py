"""Sanic on its own server: pydantic models by its extension; rejects with 400."""

import sys

from order import Order
from sanic import Request, Sanic
from sanic.response import HTTPResponse, file, json
from sanic_ext import validate
from static_file import PATH

app = Sanic("orders")


@app.post("/validate")
@validate(json=Order)
async def check(request: Request, body: Order) -> HTTPResponse:
    return json({"total": body.total()})


@app.get("/static")
async def static(request: Request) -> HTTPResponse:
    return await file(PATH)


if __name__ == "__main__":
    app.run(port=int(sys.argv[1]), single_process=True, access_log=False, motd=False)
