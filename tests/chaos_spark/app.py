"""The app of the run: it does a little work for each record, and returns one output.

Executors import this module too, so ``Driver`` passes them the environment variables that it reads.
"""

import os
import time

from penstock import App

# Makes slices last long enough that kills hit them.
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
