"""The connection to the cluster, which may not run yet, and may return under another address."""

import threading
from collections.abc import Callable
from contextlib import suppress

from penstock.errors import ServerError
from penstock.kafka.admin.cluster import Cluster


class ClusterConnection:
    """Connects when it is used first, and again after a failure.

    ``connect`` chooses the brokers each time: the embedded Kafka gets a new port with a new start.
    """

    def __init__(self, connect: Callable[[], Cluster]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._cluster: Cluster | None = None

    def cluster(self) -> Cluster:
        """Return the cluster. Raise a PenstockError that says how to start or name one if it cannot be reached."""
        with self._lock:
            found = self._cluster
            if found is None:
                self._cluster = found = self._connect()
            return found

    def begin(self) -> None:
        """Connect on a thread, if nothing is connected and nobody connects: pages without Kafka's data say so too."""
        if self._cluster is None and not self._lock.locked():
            threading.Thread(target=self._try_once, name="connect", daemon=True).start()

    def _try_once(self) -> None:
        with suppress(Exception):  # who uses it next gets the error
            self.cluster()

    def failed(self, error: Exception) -> None:
        """Note a failure of a request. If no broker answered, the next use connects again.

        The event loop calls it, so it does not wait for the lock: another thread may hold it while it connects.
        """
        if isinstance(error, ServerError):
            self._cluster = None

    @property
    def brokers(self) -> str | None:
        """The address of the connected cluster; None without a connection."""
        cluster = self._cluster
        return None if cluster is None else cluster.brokers
