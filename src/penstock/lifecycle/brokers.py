"""Which Kafka an app or a command uses."""

import os

from penstock.devkit import embedded_brokers
from penstock.errors import ServerError

_VARIABLE = "PENSTOCK_BROKERS"


def choose_brokers(given: str | None, declared: str | None = None) -> str:
    """Return the given brokers, else those of the app, else the embedded Kafka."""
    chosen = given or declared or embedded_brokers()
    if chosen is None:
        raise ServerError(
            "No brokers are configured, and the embedded Kafka is not running.",
            hint="Start the embedded Kafka with `penstock up`, or name your brokers: --brokers HOST:PORT, "
            f'{_VARIABLE}, App(brokers="HOST:PORT").',
        )
    return chosen


def brokers_in_program(given: str | None, declared: str | None) -> str:
    """Return the brokers of an app in the user's program: those of the call, else the environment's, else the app's."""
    return choose_brokers(given or os.environ.get(_VARIABLE), declared)
