"""FastAPI: pydantic models in the signature; rejects with 422."""

from fastapi import FastAPI
from fastapi.responses import FileResponse
from order import Order
from static_file import PATH

app = FastAPI()


@app.post("/validate")
async def validate(order: Order):
    return {"total": order.total()}


@app.get("/static")
async def static():
    return FileResponse(str(PATH))
