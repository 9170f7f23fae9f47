"""Carries an error from a task to the driver, as text."""

import json
import re

from penstock import errors
from penstock.errors import PenstockError


class HaltedTaskError(Exception):
    """Carries a PenstockError to the driver.

    Spark gives the driver only the printed traceback of an error in a Python worker. So the error is part of that text,
    as JSON, which keeps it on one line.
    """

    def __init__(self, error: PenstockError) -> None:
        super().__init__(f"{json.dumps([type(error).__name__, error.problem, error.hint, error.traceback])} :halted")

    @staticmethod
    def find(text: str) -> PenstockError | None:
        """Return the error in this text; None if there is none."""
        found = re.search(rf"{HaltedTaskError.__name__}: (\[.*\]) :halted", text)
        if found is None:
            return None
        name, problem, hint, *traceback = json.loads(found[1])  # errors of Spark expressions have no traceback
        kind: type[PenstockError] = getattr(errors, name)
        return kind(problem, hint=hint, traceback="".join(traceback))
