"""How a scenario is declared, and helpers of all scenarios."""

from collections.abc import Callable
from dataclasses import dataclass

from conformance.drivers import Driver
from penstock import Record

Scenario = Callable[[Driver], None]

SCENARIOS: list[Scenario] = []


def scenario(play: Scenario) -> Scenario:
    SCENARIOS.append(play)
    return play


@dataclass
class Order:
    id: int


def header(record: Record, name: str) -> str:
    return (dict(record.headers)[f"penstock-dlq-{name}"] or b"").decode()
