"""The rebalances that the runs of all machines recorded: in files of this one, and in a topic (``--report``)."""

import json
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from penstock.core.records.record import Record
from penstock.kafka.admin.cluster import Cluster
from penstock.ops.rebalance_history import ReportedRebalance
from penstock.ops.report_topics import REBALANCES_TOPIC, ReportTopicReader

_READ_BACK = 5_000
# Of runs that restart in a loop, the oldest are forgotten.
_MOST_RUNS = 1_000


class RebalanceReports:
    """The rebalances of runs that report. Any thread may call it."""

    def __init__(self) -> None:
        self._found: dict[str, list[ReportedRebalance]] = {}
        self._topic = ReportTopicReader(REBALANCES_TOPIC, self._take, read_back=_READ_BACK)
        self.version = 0
        """It is larger after each change."""

    def read(self, cluster: Cluster) -> None:
        """Take the reports since the last call. A cluster that does not answer leaves what is known."""
        self._topic.read(cluster)

    def all(self) -> list[ReportedRebalance]:
        with self._topic.lock:
            return [each for reported in self._found.values() for each in reported]

    def _take(self, record: Record) -> None:
        key = (record.key or b"").decode(errors="replace")
        self._found.pop(key, None)
        with suppress(msgspec.MsgspecError, ValueError, TypeError, KeyError):
            content = json.loads(record.value or b"{}")
            self._found[key] = msgspec.convert(content["rebalances"], list[ReportedRebalance])
        while len(self._found) > _MOST_RUNS:
            del self._found[next(iter(self._found))]
        self.version += 1


def merged(here: Iterable[ReportedRebalance], reported: Iterable[ReportedRebalance]) -> list[ReportedRebalance]:
    """Return all of them once, oldest first: runs of this machine report too."""
    found = {(each.group, each.member, each.rebalance.began): each for each in (*reported, *here)}
    return sorted(found.values(), key=lambda each: each.rebalance.began)
