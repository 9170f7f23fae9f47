"""From what a handler returns or yields to the records to write. Both engines and the testing kit use this."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from penstock.app.attempts.record_adapter import RecordAdapter, encoder_of, output_codec, output_codecs
from penstock.app.handler import Handler
from penstock.app.out import Out
from penstock.app.signature import called
from penstock.core.failures.dead_letter_headers import DEAD_LETTER_PREFIX
from penstock.core.failures.outcome import DONE, DependencyUnavailable, Done, Outcome, ProducerRecord
from penstock.core.records.origin import RETRY_PREFIX
from penstock.core.records.record import Header
from penstock.errors import HandlerBug
from penstock.serde import Format

# They say how the value and the key of the consumed record were written, or where it failed before.
_NOT_CARRIED = (DEAD_LETTER_PREFIX, RETRY_PREFIX, "__value_schema_id", "__key_schema_id")

ToOutcome = Callable[[Any, Any], Outcome]


def collecting(handler: Handler) -> Callable[..., Any]:
    """The handler's function; one that yields runs to its end and returns a list of what it has yielded.

    So an error after some yields is an error of the attempt, and nothing of it is written.
    """
    function, inner = handler.function, called(handler.function)
    if inspect.isasyncgenfunction(inner):

        @wraps(function, updated=())
        async def collect_async(*arguments: Any, **resources: Any) -> list[Any]:
            return [each async for each in function(*arguments, **resources)]

        return collect_async
    if inspect.isgeneratorfunction(inner):

        @wraps(function, updated=())
        def collect(*arguments: Any, **resources: Any) -> list[Any]:
            return [*function(*arguments, **resources)]

        return collect
    return function


def outcome_maker(handler: Handler, adapter: RecordAdapter) -> ToOutcome:
    """A function from a record and what its handler returned, which is not None, to an outcome."""
    make_one = _one_output(handler, adapter)
    if handler.signature.has_several_outputs:
        return _several_outputs(make_one)
    is_plain = not isinstance(handler.to_value, Format) and handler.carry_headers is False
    plain_to, key_of, encode = handler.default_topic if is_plain else None, adapter.key_of, encoder_of(handler)

    # A value without headers is the usual case. It is inlined because each further call costs measurable time.
    def to_outcome(record: Any, result: Any) -> Outcome:
        if plain_to is None or isinstance(result, Out):
            return Done((make_one(record, result),))
        try:
            value = encode(result)
        except DependencyUnavailable:
            raise
        except Exception as error:
            raise encoding_bug(result, error) from error
        return Done((ProducerRecord(plain_to, key_of(record), value),))

    return to_outcome


def _several_outputs(make_one: Callable[[Any, Any], ProducerRecord]) -> ToOutcome:
    def to_outcome(record: Any, result: Any) -> Outcome:
        if not _is_several(result):
            return Done((make_one(record, result),))
        outputs = tuple(make_one(record, each) for each in result if each is not None)
        return Done(outputs) if outputs else DONE

    return to_outcome


def _is_several(result: Any) -> bool:
    """Whether its elements are the outputs. Texts, dicts and models can be iterated too, and are values."""
    is_value = isinstance(result, str | bytes | bytearray | Mapping | Out) or hasattr(result, "model_dump")
    return isinstance(result, Iterable) and not is_value


def _one_output(handler: Handler, adapter: RecordAdapter) -> Callable[[Any, Any], ProducerRecord]:
    default, key_of, encode = handler.default_topic, adapter.key_of, _encoder(handler, adapter)
    carried = _carried_headers(handler, adapter)
    checked = {*handler.output_topics}
    only_to = None if handler.replay_range is None else handler.replay_range.to_topic

    def make(record: Any, result: Any) -> ProducerRecord:
        if isinstance(result, Out):
            return make_from(record, result)
        if default is None:
            raise HandlerBug(f"the handler returned {type(result).__name__}, but no output topic is set with to=")
        value, headers = encode(default, result)
        if carried is not None:
            headers = _merged(carried(record), headers)
        return ProducerRecord(default, key_of(record), value, headers)

    def make_from(record: Any, out: Out) -> ProducerRecord:
        topic = only_to or out.to or default
        if topic is None:
            raise HandlerBug(
                "the handler returned an Out without a topic, and to= names none.",
                hint="Name it with Out(..., to=), or set to=... in @app.consume.",
            )
        if topic not in checked:
            handler.check_output_topic(topic)
            checked.add(topic)
        value, headers = (None, ()) if out.value is None else encode(topic, out.value)
        headers = _merged(() if carried is None else carried(record), (*out.header_pairs, *headers))
        # A replay may redirect outputs to a topic with other partitions.
        partition = -1 if out.partition is None or only_to is not None else out.partition
        return ProducerRecord(topic, out.key_bytes(key_of(record)), value, headers, partition, out.timestamp_ms)

    return make


def _encoder(handler: Handler, adapter: RecordAdapter) -> Callable[[str, Any], tuple[bytes, tuple[Header, ...]]]:
    """The function from a topic and a value to bytes, and to the headers that say how it is encoded."""
    has_codec, plain = isinstance(handler.to_value, Format), encoder_of(handler)
    codecs = output_codecs(handler, adapter)

    def encode(topic: str, value: Any) -> tuple[bytes, tuple[Header, ...]]:
        try:
            if not has_codec:
                return plain(value), ()
            codec = codecs.get(topic) or output_codec(handler, adapter, topic)
            return codec.encode(value)
        except DependencyUnavailable:
            raise
        except Exception as error:
            raise encoding_bug(value, error) from error

    return encode


def encoding_bug(value: Any, error: Exception) -> HandlerBug:
    if isinstance(value, list | tuple) and any(isinstance(each, Out) for each in value):
        return HandlerBug(
            "the handler returned a list of Outs, and its return hint does not say so.",
            hint="Annotate it with -> list[Out] (with batch= -> list[list[Out]]), or yield them.",
        )
    return HandlerBug(f"the return value of the handler cannot be encoded: {error}")


def _carried_headers(handler: Handler, adapter: RecordAdapter) -> Callable[[Any], tuple[Header, ...]] | None:
    """The function from a record to the headers that its outputs carry on."""
    wanted, headers_of = handler.carry_headers, adapter.headers_of
    if wanted is False:
        return None
    if wanted is True:
        return lambda record: tuple(each for each in headers_of(record) or () if not each[0].startswith(_NOT_CARRIED))
    return lambda record: tuple(each for each in headers_of(record) or () if each[0] in wanted)


def _merged(carried: tuple[Header, ...], own: tuple[Header, ...]) -> tuple[Header, ...]:
    """The output's own headers replace carried ones of the same name."""
    if not carried or not own:
        return carried or own
    names = {name for name, _ in own}
    return (*(each for each in carried if each[0] not in names), *own)
