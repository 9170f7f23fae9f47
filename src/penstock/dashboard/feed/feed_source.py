"""What a topic of the feed is made of: rows by key, and a source that reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.kafka.admin.cluster import Cluster
from penstock.ops.rebalance_history import ReportedRebalance, read_all_histories
from penstock.ops.record_view import Decoding
from penstock.ops.replay_jobs import ReplayJobs
from penstock.ops.reported_rebalances import RebalanceReports, merged
from penstock.ops.reported_runs import RunReports, SeenRun, seen_runs

Row = dict[str, Any]
Rows = dict[str, Row]
"""Rows by key. Values are JSON; a source never changes a row that it has published."""

Publish = Callable[[Rows], None]


class FeedSource(Protocol):
    """Reads one topic of the feed, on a thread of its own."""

    every: float
    """Seconds between two reads. After a slow read the feed waits longer."""

    def read(self, publish: Publish, visible: frozenset[str]) -> float | None:
        """Read everything, and publish all rows once, or several times where parts are ready early.

        Return the processor time that another process has used for it, in seconds, if any.

        ``visible`` are the keys of the rows that a viewer sees now; it is empty unless the page reports them. A
        PenstockError becomes a message on the page, and the feed tries again.
        """

    def close(self) -> None:
        """End it: nobody looks at the topic any more."""


@dataclass(frozen=True)
class DashboardContext:
    """What sources and endpoints get."""

    connection: ClusterConnection
    allow_writes: bool
    note: Callable[[str], None]
    """Logs a write, where the person who started the dashboard sees it."""
    decoding: Decoding = field(default_factory=Decoding)
    replays: ReplayJobs = field(default_factory=ReplayJobs)
    reports: RunReports = field(default_factory=RunReports)
    rebalances: RebalanceReports = field(default_factory=RebalanceReports)

    def runs(self, only: str | None = None) -> list[SeenRun]:
        """Return the runs of this machine, and those that report to the cluster if it is connected."""
        return seen_runs(self.reports, self._connected(), only=only)

    def rebalances_of_all(self, folder: Path) -> list[ReportedRebalance]:
        """Return the rebalances that runs recorded in the folder of this machine, or reported; oldest first."""
        return merged(read_all_histories(folder), self.rebalances.all())

    def read_rebalances(self) -> int:
        """Take new reports of rebalances. Return a number that is larger if there were some."""
        cluster = self._connected()
        if cluster is not None:
            self.rebalances.read(cluster)
        return self.rebalances.version

    def _connected(self) -> Cluster | None:
        return None if self.connection.brokers is None else self.connection.cluster()

    def runs_of(self, group: str) -> list[SeenRun]:
        """Return the runs with this group, each with what it does now."""
        return [each.looked_at() for each in self.runs() if group in each.run.groups]


MakeSource = Callable[[DashboardContext, Mapping[str, str]], FeedSource]
"""Makes the source of a topic with these parameters. It raises a ConfigError if a parameter is missing or wrong."""
