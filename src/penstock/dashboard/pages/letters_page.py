"""Dead letters: what failed, why and when, one record with its traceback, and replays."""

import re
import shlex
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from penstock.core.failures.dead_letter_headers import replay_count
from penstock.core.filters.expression import Expression
from penstock.core.text.plurals import counted
from penstock.core.text.readable_bytes import as_text
from penstock.dashboard.feed.feed_source import DashboardContext
from penstock.dashboard.pages.given_parameters import needed_text, text_of, time_of
from penstock.dashboard.pages.letter_sources import LettersSource, replays_source, topics_source
from penstock.dashboard.pages.page_contract import DashboardPage, Endpoint
from penstock.dashboard.pages.record_texts import whole_record
from penstock.errors import ConfigError, StateError, TopicError
from penstock.kafka.admin.cluster import Cluster
from penstock.ops.dead_letters import Choice, Letter, chosen_letters
from penstock.ops.replay import PARKED, DeadLetterReplay, ReplayPlan, ReplayRequest

_LISTED = 200
_MAX_CHOSEN = 500
_PARTITION_OFFSET = re.compile(r"(\d{1,10}):(\d{1,19})")
_FLAGS = ("reason", "source", "group", "where")


def _letters(context: DashboardContext, given: Mapping[str, str]) -> LettersSource:
    return LettersSource(context, needed_text(given, "topic"))


def _list(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    """Return the last dead letters that match, the newest first."""
    topic, cluster = needed_text(given, "topic"), context.connection.cluster()
    cluster.require_topics([topic])
    choice = _choice(context, given)
    was_replayed = DeadLetterReplay(cluster, ReplayRequest(topic, choice)).replayed_before()
    matched, last = 0, deque[Letter](maxlen=_LISTED)
    for letter in chosen_letters(cluster, topic, choice):
        matched += 1
        last.append(letter)
    found = sorted(last, key=lambda each: (-each.died_at, -each.record.offset))
    return {
        "matched": matched,
        "letters": [{**_line(each), "replayed": was_replayed(each.record)} for each in found],
        "misses": choice.where.misses if choice.where else 0,
        "example": choice.where.example if choice.where else "",
    }


def _line(letter: Letter) -> dict[str, Any]:
    record, note = letter.record, letter.note
    return {
        "at": f"{record.partition}:{record.offset}",
        "died_at": letter.died_at,
        "key": None if record.key is None else as_text(record.key, limit=120),
        "source": note.topic,
        "group": note.group,
        "reason": note.reason,
        "message": note.message[:400],
        "returns": replay_count(record.headers),
    }


def _show(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    """Return one dead letter with all that is known about it."""
    topic, at = needed_text(given, "topic"), needed_text(given, "at")
    cluster = context.connection.cluster()
    cluster.require_topics([topic])
    letter = next(chosen_letters(cluster, topic, Choice(at=_positions([at]))), None)
    if letter is None:
        raise TopicError(f"{topic} has no dead letter at {at}.", hint="Retention may have deleted it.")
    note = letter.note
    seen = context.decoding.decoder_for(text_of(given, "as"))(note.topic, note.group).see(letter.record)
    source = {
        "topic": note.topic,
        "partition": note.partition,
        "offset": note.offset,
        "timestamp_ms": note.timestamp_ms,
    }
    return {
        **whole_record(letter.record, seen),
        **_line(letter),
        "key": whole_record(letter.record, seen)["key"],
        "style": note.style,
        "source": source,
        "attempts": note.attempts,
        "error_type": note.error_type,
        "traceback": note.traceback,
        "replayed": DeadLetterReplay(cluster, ReplayRequest(topic, Choice())).replayed_before()(letter.record),
    }


def _plan(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    """Return what a replay would do now."""
    cluster = context.connection.cluster()
    replay, choice = _replay(context, cluster, given)
    plan = replay.plan()
    return {
        "going": [{"to": to, "reason": reason, "count": count} for (to, reason), count in plan.going.most_common()],
        "total": plan.total,
        "parked": plan.parked,
        "parked_topic": replay.request.topic + PARKED,
        "no_source": plan.no_source,
        "replayed_before": plan.replayed_before,
        "not_selected": plan.not_selected,
        "misses": choice.where.misses if choice.where else 0,
        "command": command_of(replay.request, given),
    }


def _start(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    """Start the replay that was previewed."""
    cluster = context.connection.cluster()
    replay, _ = _replay(context, cluster, given)
    plan = replay.plan()
    require_preview(plan, given)
    command = command_of(replay.request, given)
    job = context.replays.start(cluster, replay, plan, command=f"dashboard: {command}", note=context.note)
    context.note(f"Replay of {counted(plan.total, 'dead letter')} started in the browser: {command}")
    return {"id": job.id}


def _stop(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    context.replays.stop(needed_text(given, "id"))
    context.note("A replay was stopped in the browser.")
    return {}


def require_preview(plan: ReplayPlan, given: Mapping[str, Any]) -> None:
    """Raise if the plan is not what the person has seen and confirmed."""
    if not plan.total:
        raise StateError(
            "There is nothing to replay.", hint="All of them were replayed before, or have no source topic."
        )
    if given.get("total") != plan.total:
        raise StateError(
            f"The preview is old: now {counted(plan.total, 'dead letter')} would be sent.", hint="Preview it again."
        )


def command_of(request: ReplayRequest, given: Mapping[str, Any]) -> str:
    """Return the command that does the same."""
    words = ["penstock", "dlq", "replay", request.topic]
    for name in _FLAGS:
        if text := text_of(given, name):
            words += [f"--{name}", text]
    for name, moment in (("since", request.choice.since), ("until", request.choice.until)):
        if moment is not None:
            words += [f"--{name}", datetime.fromtimestamp(moment, UTC).isoformat()]
    for partition, offset in sorted(request.choice.at):
        words += ["--at", f"{partition}:{offset}"]
    words += ["--to", request.to] if request.to else []
    words += ["--rate", f"{request.rate:g}"] if request.rate else []
    words += ["--again"] if request.again else []
    return shlex.join([*words, "--execute"])


def _replay(context: DashboardContext, cluster: Cluster, given: Mapping[str, Any]) -> tuple[DeadLetterReplay, Choice]:
    choice = _choice(context, given)
    request = ReplayRequest(
        needed_text(given, "topic"),
        choice,
        to=text_of(given, "to").strip() or None,
        rate=_rate(given),
        again=given.get("again") is True,
    )
    return DeadLetterReplay(cluster, request), choice


def _choice(context: DashboardContext, given: Mapping[str, Any]) -> Choice:
    where = text_of(given, "where").strip()
    choice = Choice(
        reason=text_of(given, "reason"),
        source=text_of(given, "source"),
        group=text_of(given, "group"),
        since=time_of(given, "since"),
        until=time_of(given, "until"),
        where=Expression(where, option="The filter") if where else None,
        at=_positions(given.get("at") or ()),
    )
    decoder_for = context.decoding.decoder_for(text_of(given, "as"))
    return replace(
        choice, values=lambda each: each.values(decoder_for(each.note.topic, each.note.group).see(each.record))
    )


def _positions(given: Any) -> frozenset[tuple[int, int]]:
    if not isinstance(given, list | tuple) or len(given) > _MAX_CHOSEN:
        raise ConfigError("Too many dead letters are chosen.", hint=f"Choose up to {_MAX_CHOSEN}, or use the filter.")
    matches = [_PARTITION_OFFSET.fullmatch(str(each)) for each in given]
    if not all(matches):
        raise ConfigError("A position is not PARTITION:OFFSET, such as 0:17.")
    return frozenset((int(each[1]), int(each[2])) for each in matches if each)


def _rate(given: Mapping[str, Any]) -> float | None:
    text = text_of(given, "rate").strip()
    if not text:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.001 <= rate <= 1e6:  # noqa: PLR2004 - the limits are in the message
        raise ConfigError(f"{text!r} is not a rate.", hint="Write records per second, from 0.001 to 1,000,000.")
    return rate


PAGE = DashboardPage(
    "letters",
    "Dead letters",
    icon="letters",
    sources={"letter-topics": topics_source, "letters": _letters, "replays": replays_source},
    endpoints=(
        Endpoint("list", _list),
        Endpoint("show", _show),
        Endpoint("plan", _plan, posts=True),
        Endpoint("replay", _start, writes=True),
        Endpoint("stop", _stop, writes=True),
    ),
    has_style=True,
)
