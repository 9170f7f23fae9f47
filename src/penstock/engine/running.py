"""Run an app on the local engine, from start to a clean stop."""

import threading
from collections.abc import Callable, Sequence

from penstock.app import App
from penstock.core.events import Event
from penstock.engine.collector import calm_collector
from penstock.engine.control import RunningApp
from penstock.engine.health import HealthBoard
from penstock.engine.lookout import Lookout
from penstock.engine.member import Member
from penstock.engine.team import Team
from penstock.kafka import Cluster, prepare_topics

_WATCH_SECONDS = 0.1


def run(
    app: App,
    *,
    brokers: str,
    emit: Callable[[Event], None],
    stop: threading.Event,
    until_caught_up: bool = False,
    per_record: bool = False,
    health: HealthBoard | None = None,
) -> None:
    """Consume for every handler of the app until ``stop`` is set, all have caught up, or one fails.

    ``emit`` is called from several threads. ``per_record`` asks for events of single records too. Members can be
    looked at on the ``health`` board.
    """
    members: list[Member] = []
    cluster = Cluster(brokers, app.settings)
    with app.controlled_by(RunningApp(members, cluster)), calm_collector():
        prepare_topics(app, cluster, emit)
        teams = [
            Team(handler, cluster, emit, per_record=per_record, until_caught_up=until_caught_up)
            for handler in app.handlers
        ]
        members.extend(member for team in teams for member in team.members)
        if health is not None:
            for member in members:
                health.add(member.health)
        for team in teams:
            team.start()
        lookout = Lookout(teams)
        lookout.start()
        _watch(members, stop)
        lookout.stop()
    for member in members:
        if member.error is not None:
            raise member.error


def _watch(members: Sequence[Member], stop: threading.Event) -> None:
    """Until all have stopped; one that fails, or a wish to stop, stops the others."""
    asked = False
    running = list(members)
    while running:
        running = [member for member in running if not member.join(_WATCH_SECONDS / len(running))]
        failed = any(member.error is not None for member in members)
        if not asked and (failed or stop.is_set()):
            asked = True
            for member in members:
                member.stop("error" if failed else "asked to")
