"""The groups of the cluster, with their status, lag and rates, dead letters, and the apps that run for them."""

import time
from collections import defaultdict, deque
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress

from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Row, Rows
from penstock.dashboard.pages.lag_rows import group_figures
from penstock.dashboard.pages.page_contract import DashboardPage
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import GroupListing
from penstock.ops.dead_letters import dead_letter_topics
from penstock.ops.group_lag import GroupLag, positions, survey
from penstock.ops.groups_of_any_kind import all_groups
from penstock.ops.lag_history import lag_history
from penstock.ops.reported_runs import SeenRun

# Up to so many groups, everything is read about all of them; of more, rates and status only of those on the screen.
_FEW = 60
_AT_ONCE = 500
# The lag of groups that nobody sees, and the dead letters, are read this often.
_UNSEEN_SECONDS = 15.0
# Each app that is looked at writes what it does once a second.
_MOST_APPS = 50
_TREND_SECONDS = 10.0
_TREND_POINTS = 30


class OverviewSource:
    every = 2.0

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._figures: dict[str, Row] = {}
        self._topics: dict[str, set[str]] = {}
        self._dead: dict[str, int] = {}
        self._errors: dict[str, int] = {}
        self._trends = _Trends()
        self._all_read_at = 0.0

    def read(self, publish: Publish, visible: frozenset[str]) -> None:
        cluster = self._context.connection.cluster()
        listed, _ = all_groups(cluster)
        names = [each.name for each in listed]
        if not names:
            cluster.require_sight("group")
        self._forget_all_but(names)
        self._errors = errors_by_group(self._context.runs())
        now, few = time.time(), len(names) <= _FEW
        first = not self._all_read_at
        if now - self._all_read_at > _UNSEEN_SECONDS:
            self._all_read_at = now
            if first:
                publish(self._rows(listed))
            if first or not few:  # positions are known sooner than rates
                for start in range(0, len(names), _AT_ONCE):
                    self._keep(positions(cluster, names[start : start + _AT_ONCE]), judged=False)
                    publish(self._rows(listed))
            with suppress(PenstockError):
                self._dead = dead_letter_topics(cluster)
        watched = names if few else [name for name in names if name in visible]
        found = survey(cluster, watched, now=now)
        self._keep(found, judged=True)
        publish(self._rows(listed))
        if self._trends.note(cluster, found, now):
            publish(self._rows(listed))

    def close(self) -> None: ...

    def _forget_all_but(self, names: Iterable[str]) -> None:
        """Groups come and go; one that is created again begins with no figures."""
        existing = set(names)
        self._figures = {name: each for name, each in self._figures.items() if name in existing}
        self._topics = {name: each for name, each in self._topics.items() if name in existing}
        self._trends.keep(existing)

    def _keep(self, found: Mapping[str, GroupLag | PenstockError], *, judged: bool) -> None:
        for name, each in found.items():
            self._figures[name] = self._figures.get(name, {}) | group_figures(each, judged=judged)
            if isinstance(each, GroupLag):
                self._topics[name] = {part.topic for part in each.partitions}

    def _rows(self, listed: Iterable[GroupListing]) -> Rows:
        apps: defaultdict[str, int] = defaultdict(int)
        for each in self._context.runs():
            for group in set(each.run.groups):
                apps[group] += 1
        return {
            each.name: {
                "name": each.name,
                "type": each.type,
                "state": each.state,
                "apps": apps.get(each.name, 0),
                "dead": self._dead_letters(each.name),
                "errors": self._errors.get(each.name),
                "trend": self._trends.of(each.name),
                **self._figures.get(each.name, {}),
            }
            for each in listed
        }

    def _dead_letters(self, group: str) -> int:
        """Return the dead letters of the group's topics: other groups of the same topics may share them."""
        return sum(
            count
            for letters, count in self._dead.items()
            if any(
                letters.startswith(topic) and letters[len(topic) :][:1] in {".", "-", "_"}
                for topic in self._topics.get(group, ())
            )
        )


def errors_by_group(runs: Sequence[SeenRun]) -> dict[str, int]:
    """Return how often attempts have failed in the apps of each group, since they started, as far as they say it."""
    found: dict[str, int] = {}
    for run in runs[:_MOST_APPS]:
        for handler in (run.looked_at().picture or {}).get("handlers", ()):
            failed = sum(error["count"] for error in handler["errors"])
            found[handler["group"]] = found.get(handler["group"], 0) + failed
    return found


class _Trends:
    """The lag of groups over the last minutes: first from the log of commits, then as it is read.

    While a group is not read, its line has a gap. If all of it is a gap, the log is read again.
    """

    def __init__(self) -> None:
        self._points: dict[str, deque[int | None]] = {}
        self._noted_at = 0.0

    def of(self, name: str) -> list[int | None]:
        return list(self._points.get(name, ()))

    def keep(self, names: Container[str]) -> None:
        self._points = {name: points for name, points in self._points.items() if name in names}

    def note(self, cluster: Cluster, found: Mapping[str, GroupLag | PenstockError], now: float) -> bool:
        """Add what was read now, if the last point is old enough; return whether there are new groups."""
        if now - self._noted_at >= _TREND_SECONDS:
            self._noted_at = now
            for name, points in self._points.items():
                each = found.get(name)
                points.append(each.lag if isinstance(each, GroupLag) else None)
            self.keep({name for name, points in self._points.items() if name in found or _any_known(points)})
        fresh = [name for name in found if name not in self._points]
        if not fresh:
            return False
        seconds = _TREND_SECONDS * _TREND_POINTS
        history = lag_history(cluster, fresh, now=now, seconds=seconds, points=_TREND_POINTS)
        for name in fresh:
            known = [each.lag for each in history.get(name, ())]
            self._points[name] = deque(known, maxlen=_TREND_POINTS)
        return True


def _any_known(points: Iterable[int | None]) -> bool:
    return any(each is not None for each in points)


def _overview(context: DashboardContext, _given: Mapping[str, str]) -> OverviewSource:
    return OverviewSource(context)


PAGE = DashboardPage("groups", "Groups", icon="groups", sources={"groups": _overview}, has_style=True)
