"""BlackSheep: pydantic models in the signature; rejects with 400."""

from blacksheep import Application, Response, file, json
from blacksheep.server.bindings import FromJSON
from order import Order
from static_file import PATH

app = Application()


@app.router.post("/validate")
async def validate(data: FromJSON[Order]) -> Response:
    return json({"total": data.value.total()})


@app.router.get("/static")
async def static() -> Response:
    return file(str(PATH), "application/octet-stream")
