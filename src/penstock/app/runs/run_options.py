"""The options of ``app.run``, ``serve``, ``start``, ``running`` and ``lifespan``, and their checks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

from penstock.app.runs.replay_options import Replay
from penstock.core.reports.events import Event
from penstock.core.text.suggestions import refuse_unknown
from penstock.errors import ConfigError

Engine = Literal["local", "spark"]


class RunOptions(TypedDict, total=False):
    """The keyword options of the methods that run an app; docs/embedding.md describes them."""

    brokers: str | None
    """Bootstrap servers. Default: PENSTOCK_BROKERS, else those of the app, else the embedded Kafka."""
    engine: Engine
    """The engine that runs the handlers: ``"local"`` (default) or ``"spark"``."""
    until_caught_up: bool
    """Handle the records that are in the topics at the start, then stop."""
    replay: Replay | None
    """Handle this range once, beside the live group, then stop."""
    on_event: Callable[[Event], Any] | None
    """A function that gets every event, except those of single records."""
    master: str | None
    """Spark's master. Needs ``engine="spark"``."""
    spark_conf: Mapping[str, str] | None
    """Spark's settings. Needs ``engine="spark"``."""
    checkpoint: str | Path | None
    """The folder of the checkpoints of pipelines. Needs ``engine="spark"``."""


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The options of one run, checked."""

    brokers: str | None = None
    engine: Engine = "local"
    until_caught_up: bool = False
    replay: Replay | None = None
    on_event: Callable[[Event], Any] | None = None
    master: str | None = None
    spark_conf: Mapping[str, str] | None = None
    checkpoint: str | Path | None = None


def checked_settings(given: Mapping[str, Any], *, of: str) -> RunSettings:
    """Return the settings, or raise an error that names the option. ``of`` is the method that got them."""
    refuse_unknown(given, [each.name for each in fields(RunSettings)], of=of)
    settings = RunSettings(**given)
    if settings.engine not in get_args(Engine):
        raise ConfigError(f"{of} has no engine {settings.engine!r}.", hint='Choose engine="local" or engine="spark".')
    if settings.brokers is not None and not (isinstance(settings.brokers, str) and settings.brokers.strip()):
        raise ConfigError(
            f"{of} got brokers={settings.brokers!r}, which names no broker.",
            hint='Write brokers="localhost:9092", or leave it out.',
        )
    if settings.on_event is not None and not callable(settings.on_event):
        raise ConfigError(
            f"{of} got on_event={settings.on_event!r}, which is not a function.",
            hint="Pass a function that takes one event.",
        )
    spark_only = [name for name in ("master", "spark_conf", "checkpoint") if getattr(settings, name) is not None]
    if settings.engine == "local" and spark_only:
        raise ConfigError(f'{of} got {spark_only[0]}=, which needs engine="spark".', hint="Add it, or leave this out.")
    return settings if settings.replay is None else _of_replay(settings, of)


def _of_replay(settings: RunSettings, of: str) -> RunSettings:
    if not isinstance(settings.replay, Replay):
        raise ConfigError(
            f"{of} got replay={settings.replay!r}, which is not a Replay.",
            hint='Write replay=Replay(from_="2026-01-31", to="2026-02-01").',
        )
    if settings.until_caught_up:
        raise ConfigError(
            f"{of} got until_caught_up=True and replay=, which stops at the end of its range.",
            hint="Leave until_caught_up out.",
        )
    if settings.checkpoint is not None:
        raise ConfigError(
            f"{of} got checkpoint= and replay=. Only pipelines have checkpoints, and a replay runs handlers.",
            hint="Leave checkpoint out.",
        )
    return replace(settings, until_caught_up=True)
