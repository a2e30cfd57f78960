"""Falcon (ASGI): msgspec by hand, as its documentation has it; refuses with 422."""

import aiofiles
import falcon
import falcon.asgi
import msgspec
from order_structs import Order
from static_file import PATH, SIZE

ORDER = msgspec.json.Decoder(Order)


class Validate:
    async def on_post(self, request: falcon.asgi.Request, response: falcon.asgi.Response) -> None:
        try:
            order = ORDER.decode(await request.stream.read())
        except msgspec.MsgspecError as error:
            raise falcon.HTTPUnprocessableEntity(description=str(error)) from error
        response.media = {"total": order.total()}


class Static:
    async def on_get(self, request: falcon.asgi.Request, response: falcon.asgi.Response) -> None:
        response.content_type = "application/octet-stream"
        response.set_stream(await aiofiles.open(PATH, "rb"), SIZE)


app = falcon.asgi.App()
app.add_route("/validate", Validate())
app.add_route("/static", Static())
