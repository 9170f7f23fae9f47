"""Checks of the options that say where outputs go: ``to``, ``dead_letter`` and ``carry_headers``."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.app.options.consume_options import is_topic_name
from penstock.app.out import Out
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app.handler import Handler

Wrong = Callable[[str, str], ConfigError]


def check_outputs(handler: "Handler", wrong: Wrong) -> None:
    _check_topics(handler, wrong)
    kinds = handler.signature.output_types
    if handler.to is None and any(kind not in (Any, Out) for kind in kinds):
        raise wrong(
            "it returns a value, but has no output topic.",
            "Name one with to=..., or annotate the function with -> None.",
        )
    if handler.commit == "manual" and handler.declares_outputs:
        what = "to=" if handler.to is not None else "outputs"
        raise wrong(
            f'commit="manual" does not work with {what}: a record with an output is finished when Kafka has it.',
            "Leave one of them out.",
        )
    _check_carried(handler, wrong)


def _check_topics(handler: "Handler", wrong: Wrong) -> None:
    topics = handler.output_topics
    for topic in (*handler.consumed_topics, *topics, handler.dead_letter):
        if topic is not None and not is_topic_name(topic):
            raise wrong(
                f"{topic!r} is not a topic name.",
                "Kafka takes up to 249 letters, digits, dots, dashes and underscores.",
            )
    if handler.to is not None and len(set(topics)) != max(1, len(topics)):
        raise wrong(f"to={handler.to!r} is empty, or lists a topic twice.", "List each topic once.")
    for option, topic in (*(("to", topic) for topic in topics), ("dead_letter", handler.dead_letter)):
        if topic is not None and handler.consumes(topic):
            raise wrong(
                f"{option}={topic!r} is also its source, so it would consume its own output.", "Use another topic."
            )
    if handler.dead_letter is not None and handler.dead_letter in topics:
        raise wrong(f"to and dead_letter are both {handler.dead_letter!r}.", "Use another topic for dead letters.")


def output_topic_problem(handler: "Handler", topic: str) -> str | None:
    """Why the outputs of the handler cannot go to a topic that an ``Out`` names; None if they can."""
    if handler.commit == "manual":
        return 'commit="manual" does not work with outputs, because such a record is finished when Kafka has them'
    if handler.signature.takes_transaction:
        return "it takes tx, and no transaction covers both a database and Kafka"
    if not is_topic_name(topic):
        return "Kafka takes up to 249 letters, digits, dots, dashes and underscores"
    if handler.consumes(topic):
        return "it is also its source, so it would consume its own output"
    if topic == handler.dead_letter:
        return "it is its dead_letter topic"
    return None


def _check_carried(handler: "Handler", wrong: Wrong) -> None:
    carried: Any = handler.carry_headers
    is_list = isinstance(carried, Sequence) and not isinstance(carried, str | bytes)
    if not isinstance(carried, bool) and not (is_list and carried and all(isinstance(name, str) for name in carried)):
        raise wrong(
            f"carry_headers={carried!r} does not say which headers.",
            'Use True for all headers of the record, or a list of names: ["trace", "tenant"].',
        )
    if carried and handler.to is None and not handler.signature.output_types:
        raise wrong(
            "carry_headers= has no effect: its return hint says that it has no output.",
            "Leave carry_headers= out, or change the hint.",
        )
