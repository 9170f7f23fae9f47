"""A process that is forked beside running tasks leaves the Kafka clients of its parent alone."""

import subprocess
import sys
import warnings

from pyspark import cloudpickle

from penstock import App
from penstock.core.settings import Settings
from penstock.spark.tasks.worker_state import TaskPlan, worker_state


def handle(value: bytes) -> None:
    """Does nothing."""


def test_a_fork_with_a_function_in_the_child_does_not_crash() -> None:
    """PySpark starts its JVM in this way. To destroy a client in the child is a segmentation fault."""
    app = App("forks")
    app.consume("orders")(handle)
    (handler,) = app.handlers
    plan = TaskPlan(handler.without_settings(), "127.0.0.1:1", Settings({}))
    packed = cloudpickle.dumps(plan)  # type: ignore[no-untyped-call]
    # Nothing but the worker's own list refers to these clients.
    worker_state(packed).give_back(worker_state(packed).take_consumer())
    worker_state(packed).producer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and newer warn of forks beside threads
        done = subprocess.run([sys.executable, "-c", ""], preexec_fn=lambda: None, check=False)
    assert done.returncode == 0
    worker_state(packed).close()
