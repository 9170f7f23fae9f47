"""One group: its members and partitions."""

import time
from collections.abc import Mapping

from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Rows
from penstock.dashboard.pages.lag_rows import group_figures, partition_figures
from penstock.dashboard.pages.page_contract import DashboardPage
from penstock.errors import ConfigError, PenstockError
from penstock.ops.group_lag import survey
from penstock.ops.groups_of_any_kind import no_group


class GroupSource:
    """Rows: ``group``; ``partition TOPIC/NUMBER``; ``member ID``."""

    every = 2.0

    def __init__(self, context: DashboardContext, name: str) -> None:
        self._context = context
        self._name = name

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - it reads all partitions
        cluster = self._context.connection.cluster()
        found = survey(cluster, [self._name], now=time.time())[self._name]
        if isinstance(found, PenstockError):
            raise found
        if not found.group.exists:
            raise no_group(self._name, cluster, hint="The page Groups lists them.")
        group = found.group
        rows: Rows = {
            "group": {
                "name": self._name,
                "assignor": group.assignor,
                "coordinator": group.coordinator,
                "simple": group.simple,
                **group_figures(found, judged=True),
            }
        }
        for part in found.partitions:
            rows[f"partition {part.topic}/{part.partition}"] = partition_figures(part)
        for member in group.members:
            rows[f"member {member.id}"] = {
                "id": member.id,
                "client": member.client,
                "host": member.host,
                "static_id": member.static_id,
                "rack": member.rack,
                "partitions": [list(tp) for tp in member.partitions],
                "target": [list(tp) for tp in member.target],
            }
        publish(rows)

    def close(self) -> None: ...


def _group(context: DashboardContext, given: Mapping[str, str]) -> GroupSource:
    if not given.get("name"):
        raise ConfigError("The group has no name.", hint="Choose a group on the page Groups.")
    return GroupSource(context, given["name"])


PAGE = DashboardPage("group", under="groups", sources={"group": _group})
