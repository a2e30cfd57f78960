"""Starlette: brings no validation, so pydantic is called by hand."""

from order import Order
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from static_file import PATH


async def validate(request: Request) -> Response:
    try:
        order = Order.model_validate_json(await request.body())
    except ValidationError as error:
        return JSONResponse(error.errors(include_url=False, include_context=False), status_code=422)
    return JSONResponse({"total": order.total()})


async def static(request: Request) -> Response:
    return FileResponse(PATH)


app = Starlette(routes=[Route("/validate", validate, methods=["POST"]), Route("/static", static)])
