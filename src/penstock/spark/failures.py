"""Spark's errors, translated into what a user can act on."""

from penstock.app import Handler
from penstock.errors import PenstockError, ServerError
from penstock.spark.places import log_file
from penstock.spark.task import HaltedTaskError


def translate(error: Exception, *, handler: Handler) -> PenstockError:
    text = str(error)
    open("/tmp/ps/lasterr.txt", "w").write(f"{type(error)} {text}")
    halted = HaltedTaskError.find(text)
    if halted is not None:
        return halted
    return ServerError(f"Spark failed in handler {handler.name}: {text[:300]}", hint=f"See {log_file()}.")
