"""The app of the run: a little work for each record, and one output for it.

Executors import this module too, so what it reads from the environment is handed to them (``Driver``).
"""

import os
import time

from penstock import App

# Makes a batch last a second or so, so that kills come in the middle of one.
_SECONDS = float(os.environ.get("CHAOS_SECONDS", "0.0002"))

app = App(os.environ["CHAOS_GROUP"])


@app.consume(
    os.environ["CHAOS_TOPIC"],
    to=os.environ["CHAOS_OUT"],
    delivery=os.environ["CHAOS_DELIVERY"],  # type: ignore[arg-type]
    max_in_flight=int(os.environ["CHAOS_IN_FLIGHT"]),
)
def copy(value: int) -> str:
    time.sleep(_SECONDS)
    return str(value)
