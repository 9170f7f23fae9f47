"""Runs an app on the local engine, from the start to a clean stop."""

import threading
import time
from collections.abc import Callable, Sequence

from penstock.app import App, refuse_unsupported
from penstock.app.dispatching.tuned_gc import tuned_gc
from penstock.codecs import prepare_formats
from penstock.core.reports.events import Event
from penstock.engine.handler_members import HandlerMembers
from penstock.engine.member import HandlerMember
from penstock.engine.membership.topic_watcher import TopicWatcher
from penstock.engine.observe.health import HealthBoard
from penstock.engine.observe.readiness import readiness_checks
from penstock.engine.observe.running_app import RunningApp
from penstock.engine.process_resources import process_resources
from penstock.engine.share import ShareMember
from penstock.errors import ConfigError
from penstock.kafka import Cluster, prepare_topics

# How often to look whether the app has to stop: often at first, for short runs.
_WATCH_SECONDS = 0.1
_LATER_WATCH_SECONDS = 0.25
_SHORT_RUN_SECONDS = 5.0


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

    Several threads call ``emit``. With ``per_record`` there are also events for single records. ``health`` gets the
    members' health, readiness and metrics.
    """
    app.refuse_pipelines(
        where="the local engine", hint="Run the app with --engine spark, or move the pipelines to a separate app."
    )
    _check_options(app, until_caught_up=until_caught_up)
    declared = app.wired_handlers()
    members: list[HandlerMember | ShareMember] = []
    prepare_formats(app)
    cluster = Cluster(brokers, app.settings)
    with app.controlled_by(RunningApp(members, cluster.end_offsets, emit=emit)), tuned_gc():
        prepare_topics(app, cluster, emit)
        with process_resources(app.name, declared, emit=emit, stop=stop) as handlers:
            all_members = [
                HandlerMembers(handler, cluster, emit, per_record=per_record, until_caught_up=until_caught_up)
                for handler in handlers
            ]
            members.extend(member for handler_members in all_members for member in handler_members.members)
            if health is not None:
                for member in members:
                    health.add(member.health, member.member_metrics, member.activity)
                health.set_readiness(readiness_checks(app, members, stop))
            _prepare(members, stop)
            for handler_members in all_members:
                handler_members.start()
            topic_watcher = TopicWatcher(all_members)
            topic_watcher.start()
            _watch(members, stop)
            topic_watcher.stop()
            for member in members:
                if member.error is not None:
                    raise member.error


def _prepare(members: Sequence[HandlerMember | ShareMember], stop: threading.Event) -> None:
    """Make what the members need, so that nothing is consumed if one of them cannot start."""
    try:
        for member in members:
            member.prepare(stop)
    except BaseException:
        for member in members:
            member.discard()
        raise


def _check_options(app: App, *, until_caught_up: bool) -> None:
    for handler in app.handlers:
        refuse_unsupported(handler, "local")
        if handler.is_shared and until_caught_up:
            raise ConfigError(
                f"Handler {handler.name} consumes as a share group, and Kafka does not say when a share group has "
                "caught up.",
                hint="Run it without --until-caught-up, and stop it when its work is done.",
            )


def _watch(members: Sequence[HandlerMember | ShareMember], stop: threading.Event) -> None:
    """Wait until all members have stopped. Stop all of them when ``stop`` is set or one of them fails."""
    asked = False
    running, began = list(members), time.monotonic()
    while running:
        seconds = _WATCH_SECONDS if time.monotonic() - began < _SHORT_RUN_SECONDS else _LATER_WATCH_SECONDS
        running = [member for member in running if not member.join(seconds / len(running))]
        failed = any(member.error is not None for member in members)
        if not asked and (failed or stop.is_set()):
            asked = True
            for member in members:
                member.stop("error" if failed else "asked to")
