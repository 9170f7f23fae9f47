"""The groups of the cluster, with their status, lag and rates, and the apps that run for them."""

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Row, Rows
from penstock.dashboard.pages.lag_rows import group_figures
from penstock.dashboard.pages.page_contract import DashboardPage
from penstock.errors import PenstockError
from penstock.kafka.admin.consumer_groups import GroupListing
from penstock.ops.group_lag import GroupLag, positions, survey
from penstock.ops.groups_of_any_kind import all_groups
from penstock.ops.runs import alive

# Up to so many groups, everything is read about all of them; of more, rates and status only of those on the screen.
_FEW = 60
_AT_ONCE = 500
# The lag of groups that nobody sees is read this often.
_UNSEEN_SECONDS = 15.0
_TREND_SECONDS = 5.0
_TREND_POINTS = 24


class OverviewSource:
    every = 2.0

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._found: dict[str, GroupLag | PenstockError] = {}
        self._judged: dict[str, Row] = {}
        self._all_read_at = 0.0
        self._trends: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_TREND_POINTS))
        self._sampled: dict[str, float] = {}

    def read(self, publish: Publish, visible: frozenset[str]) -> None:
        cluster = self._context.connection.cluster()
        listed, _ = all_groups(cluster)
        names = [each.name for each in listed]
        if not names:
            cluster.require_sight("group")
        if not self._all_read_at:
            publish(self._rows(listed))
            if len(names) <= _FEW:  # positions are known sooner than rates
                self._keep(positions(cluster, names), 0.0)
                publish(self._rows(listed))
        watched = names if len(names) <= _FEW else [name for name in names if name in visible]
        now = time.time()
        if len(names) > _FEW and now - self._all_read_at > _UNSEEN_SECONDS:
            for start in range(0, len(names), _AT_ONCE):
                self._keep(positions(cluster, names[start : start + _AT_ONCE]), now)
                publish(self._rows(listed))
        self._all_read_at = now if now - self._all_read_at > _UNSEEN_SECONDS else self._all_read_at
        self._keep(survey(cluster, watched, now=now), now, judged=True)
        self._found = {name: each for name, each in self._found.items() if name in set(names)}
        publish(self._rows(listed))

    def close(self) -> None: ...

    def _keep(self, found: Mapping[str, GroupLag | PenstockError], now: float, *, judged: bool = False) -> None:
        self._found |= found
        for name, each in found.items():
            if judged or name not in self._judged:
                self._judged[name] = group_figures(each, judged=judged)
            else:
                self._judged[name] = self._judged[name] | group_figures(each, judged=False)
            if isinstance(each, GroupLag) and judged and now - self._sampled.get(name, 0.0) >= _TREND_SECONDS:
                self._sampled[name] = now
                self._trends[name].append(each.lag)

    def _rows(self, listed: Iterable[GroupListing]) -> Rows:
        apps: defaultdict[str, int] = defaultdict(int)
        for run in alive():
            for group in run.groups:
                apps[group] += 1
        return {
            each.name: {
                "name": each.name,
                "type": each.type,
                "state": each.state,
                "apps": apps.get(each.name, 0),
                "trend": list(self._trends[each.name]) if each.name in self._trends else [],
                **self._judged.get(each.name, {}),
            }
            for each in listed
        }


def _overview(context: DashboardContext, _given: Mapping[str, str]) -> OverviewSource:
    return OverviewSource(context)


PAGE = DashboardPage("groups", "Groups", icon="groups", sources={"groups": _overview}, has_style=True)
