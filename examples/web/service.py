"""A web service that handles orders from Kafka while it answers requests.

Run it with `uvicorn service:service`. Ctrl+C or SIGTERM stops both: the handler finishes its records and commits.
"""

from dataclasses import dataclass

from fastapi import FastAPI, HTTPException

from penstock import App

shop = App("web-shop")
totals: dict[str, int] = {}


@dataclass
class Order:
    id: int
    cents: int


@dataclass
class Receipt:
    order: int
    cents: int


@shop.consume("web-orders", to="web-receipts", order="key")
def charge(order: Order, key: str) -> Receipt:
    totals[key] = totals.get(key, 0) + order.cents  # order="key": no other record of this customer runs now
    return Receipt(order.id, order.cents)


service = FastAPI(lifespan=shop.lifespan)  # the app starts before the first request and stops after the last one


@service.get("/customers/{name}")
async def customer(name: str) -> dict[str, int]:
    if name not in totals:
        raise HTTPException(404, f"{name} has no orders.")
    return {"cents": totals[name]}


@service.get("/progress")
def progress() -> dict[str, int]:  # a plain function, because app.progress() asks the broker
    partitions = shop.progress()
    return {"partitions": len(partitions), "lag": sum(each.lag or 0 for each in partitions)}
