"""The apps that run on this machine, and those on others that report."""

from collections.abc import Mapping

from penstock.dashboard.feed.feed_source import DashboardContext, Publish
from penstock.dashboard.pages.live_app_page import run_row
from penstock.dashboard.pages.page_contract import DashboardPage


class AppsSource:
    every = 1.0

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - a few rows
        publish({each.id: run_row(each) for each in self._context.runs()})

    def close(self) -> None: ...


def _apps(context: DashboardContext, _given: Mapping[str, str]) -> AppsSource:
    return AppsSource(context)


PAGE = DashboardPage("apps", "Live apps", icon="apps", sources={"apps": _apps})
