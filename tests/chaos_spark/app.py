"""The app of the run: a little work for each record, and one output for it.

Executors import this module too, so what it reads from the environment is handed to them (``Driver``).
"""

import os
import time

from penstock import App

# Makes a slice last a while, so that kills come in the middle of one.
_SECONDS = float(os.environ.get("CHAOS_SECONDS", "0.0002"))

app = App(os.environ["CHAOS_GROUP"])


@app.consume(
    os.environ["CHAOS_TOPIC"],
    to=os.environ["CHAOS_OUT"],
    delivery=os.environ["CHAOS_DELIVERY"],  # type: ignore[arg-type]
    max_micro_batch=int(os.environ["CHAOS_SLICE"]),
)
def copy(value: int) -> str:
    time.sleep(_SECONDS)
    return str(value)
