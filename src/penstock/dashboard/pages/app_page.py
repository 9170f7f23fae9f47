"""The apps that run on this machine."""

from collections.abc import Mapping

from penstock.dashboard.feed.feed_source import DashboardContext, Publish
from penstock.dashboard.pages.page_contract import DashboardPage
from penstock.ops.runs import alive


class AppsSource:
    every = 1.0

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - a few rows
        publish(
            {
                str(run.pid): {
                    "pid": run.pid,
                    "app": run.app,
                    "engine": run.engine,
                    "groups": list(run.groups),
                    "since": round(run.born),
                    "stopping": run.stopping,
                }
                for run in alive()
            }
        )

    def close(self) -> None: ...


def _apps(_context: DashboardContext, _given: Mapping[str, str]) -> AppsSource:
    return AppsSource()


PAGE = DashboardPage("apps", "Live apps", icon="apps", sources={"apps": _apps})
