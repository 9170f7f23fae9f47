"""Asks the cluster, and asks again in a while if it does not answer."""

import time
from collections.abc import Callable

from penstock.errors import PenstockError
from penstock.spark.tasks.run_slices import may_pass

_AWAY_SECONDS = 1.0


class ClusterRetry:
    """Running slices continue while the cluster does not answer the driver."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._away_until = 0.0

    def __call__(self, ask: Callable[[], None]) -> None:
        """Call ``ask``, unless the cluster did not answer within the last second."""
        if time.monotonic() < self._away_until:
            return
        try:
            ask()
        except PenstockError as error:
            if not may_pass(error):
                raise
            self._away_until = time.monotonic() + _AWAY_SECONDS
            self._warn(f"{error} Penstock retries.")
