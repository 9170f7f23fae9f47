"""How values, keys and headers reach a handler, and how its return value is encoded."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from penstock import App, Avro, JsonSchema, Protobuf, Record, Reject, Retry, Skip
from penstock.app import RecordAdapter, attempts, attempts_async, batch_attempts, batch_attempts_async
from penstock.codecs import RECORDS
from penstock.core.failures.outcome import DONE, DependencyUnavailable, Done, Failed, Outcome, ProducerRecord, Skipped
from penstock.errors import ConfigError
from protobuf_messages import Note


@dataclass
class Customer:
    id: int
    name: str


class CustomerFormat:
    """The number and the name of a customer, each as long as it says."""

    @staticmethod
    def decode(data: bytes) -> Customer:
        number, length = struct.unpack_from(">ii", data)
        if len(data) != 8 + length:
            raise ValueError(f"a name of {length} bytes in {len(data) - 8}")
        return Customer(number, data[8:].decode())

    @staticmethod
    def encode(customer: Customer) -> bytes:
        name = customer.name.encode()
        return struct.pack(">ii", customer.id, len(name)) + name


ANN = struct.pack(">ii", 7, 3) + b"Ann"
RECORD = Record("customers", 0, 5, b"42", ANN, (("trace", b"abc"), ("tries", b"3"), ("empty", None)))


def attempt(function: Any, record: Record = RECORD, **options: Any) -> Outcome:
    app = App("shop")
    app.consume("customers", **options)(function)
    return attempts(app.handlers[0], RECORDS)(record, 1)


@pytest.mark.parametrize("how", [CustomerFormat(), CustomerFormat.decode, lambda data: CustomerFormat.decode(data)])  # noqa: PLW0108
def test_an_object_or_any_function_of_bytes_decodes(how: Any) -> None:
    def handle(customer: Customer) -> None:
        assert customer == Customer(7, "Ann")

    assert isinstance(attempt(handle, value=how), Done)


def test_a_type_given_with_value_counts_more_than_the_hint() -> None:
    seen: list[Any] = []
    record = Record("t", 0, 0, None, b'{"id":7,"name":"Ann"}')
    attempt(seen.append, record, value=Customer)
    attempt(lambda value: seen.append(value), record, value=dict[str, Any])  # noqa: PLW0108
    assert seen == [Customer(7, "Ann"), {"id": 7, "name": "Ann"}]


def test_an_error_of_a_users_decoder_is_final_and_says_why() -> None:
    def handle(customer: Customer) -> None: ...

    failure = attempt(handle, Record("t", 0, 0, None, ANN[:-1]), value=CustomerFormat(), retry=Retry(attempts=9))
    assert isinstance(failure, Failed)
    assert (failure.error_type, failure.final) == ("Undecodable", True)
    assert failure.message == "the decoder of the value failed: ValueError: a name of 3 bytes in 2"


@pytest.mark.parametrize(
    ("error", "expected"),
    [(Skip("not ours"), Skipped("not ours")), (Reject("never"), Failed("Reject", "never", final=True))],
)
def test_a_decoder_may_choose_an_outcome_itself(error: Exception, expected: Outcome) -> None:
    def decode(_data: bytes) -> Any:
        raise error

    assert attempt(values, value=decode) == expected


def test_a_key_and_headers_are_decoded_by_the_hints_of_their_parameters() -> None:
    seen: list[Any] = []

    def handle(value: bytes, headers: dict[str, str], key: int, record: Record) -> None:
        seen.extend((value, headers, key, record))

    assert isinstance(attempt(handle), Done)
    assert seen == [ANN, {"trace": "abc", "tries": "3", "empty": None}, 42, RECORD]


def test_a_key_and_headers_are_decoded_by_options() -> None:
    seen: list[Any] = []

    def handle(key: Any, headers: dict[str, Any]) -> None:
        seen.extend((key, headers))

    attempt(handle, key=str, headers={"tries": int, "trace": bytes.upper})
    assert seen == ["42", {"trace": b"ABC", "tries": 3, "empty": None}]


@pytest.mark.parametrize(
    ("function", "record", "reason"),
    [
        (lambda key: None, Record("t", 0, 0, None, b"x"), "the key is null; to accept null, write `| None`"),
        (lambda key: None, Record("t", 0, 0, b"\xff", b"x"), "the key is not UTF-8 text"),
        (
            lambda headers: None,
            Record("t", 0, 0, None, b"x", (("a", b"\xff"),)),
            "the header 'a': the value is not UTF-8 text",
        ),
    ],
)
def test_an_undecodable_key_or_header_fails_the_record_and_says_which(
    function: Any, record: Record, reason: str
) -> None:
    part = function.__code__.co_varnames[0]
    function.__annotations__[part] = str if part == "key" else dict[str, str]
    failure = attempt(function, record)
    assert isinstance(failure, Failed)
    assert failure.final
    assert failure.message.startswith(reason)


def test_a_null_key_is_none_where_the_hint_allows_it() -> None:
    def handle(key: str | None) -> None:
        assert key is None

    assert isinstance(attempt(handle, Record("t", 0, 0, None, None)), Done)


@pytest.mark.parametrize("how", [CustomerFormat(), CustomerFormat.encode])
def test_an_object_or_any_function_to_bytes_encodes(how: Any) -> None:
    def handle(customer: Customer) -> Customer:
        return customer

    done = attempt(handle, value=CustomerFormat(), to="out", to_value=how)
    assert done == Done((ProducerRecord("out", b"42", ANN),))


def test_an_encoder_that_makes_no_bytes_rejects() -> None:
    outcome = attempt(lambda value: value, to="out", to_value=lambda value: 7)
    assert isinstance(outcome, Failed)
    assert "the encoder returned int, not bytes" in outcome.message


AVRO = {
    "type": "record",
    "name": "Customer",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}],
}
BARE = Avro(AVRO, schema_id=None)
AVRO_ANN = b"\x0e\x06Ann"


def test_a_format_decodes_into_what_the_hint_asks_for() -> None:
    seen: list[Any] = []

    def into_class(customer: Customer) -> None:
        seen.append(customer)

    def into_dict(customer: dict[str, Any]) -> None:
        seen.append(customer)

    record = Record("t", 0, 0, None, AVRO_ANN)
    for function in (into_class, into_dict, lambda value: seen.append(value)):  # noqa: PLW0108
        assert isinstance(attempt(function, record, value=BARE), Done)
    assert seen == [Customer(7, "Ann"), {"id": 7, "name": "Ann"}, {"id": 7, "name": "Ann"}]


def test_a_decoded_value_must_still_match_the_type_hint() -> None:
    @dataclass
    class Named:
        id: str

    def handle(customer: Named) -> None: ...

    handle.__annotations__["customer"] = Named
    failure = attempt(handle, Record("t", 0, 0, None, AVRO_ANN), value=BARE)
    assert isinstance(failure, Failed)
    assert failure.message == "Expected `str`, got `int` - at `$.id`"


def test_formats_decode_and_encode_in_a_batch_and_a_bad_record_fails_alone() -> None:
    app = App("shop")

    @app.consume("t", batch=10, value=BARE, key=str, to="out", to_value=BARE)
    def handle(customers: list[Customer], keys: list[str], records: list[Record]) -> list[Customer]:
        assert keys == ["a", "b"]
        assert [record.attempt for record in records] == [1, 1]
        return customers

    records = [
        Record("t", 0, 0, b"a", AVRO_ANN),
        Record("t", 0, 1, b"a", AVRO_ANN[:-1]),
        Record("t", 0, 2, b"b", AVRO_ANN),
        Record("t", 0, 3, None, AVRO_ANN),
    ]
    outcomes = batch_attempts(app.handlers[0], RECORDS)(records, [1] * 4)
    assert outcomes[0] == Done((ProducerRecord("out", b"a", AVRO_ANN),))
    assert outcomes[2] == Done((ProducerRecord("out", b"b", AVRO_ANN),))
    assert [each.message for each in outcomes if isinstance(each, Failed)] == [
        "expected string, but the value ends there (2 of 3 bytes) - at `$.name`",
        "the key is null; to accept null, write `| None` in the type hint",
    ]


class Shy:
    """A codec that knows nothing until it has been asked once, aside; then it repeats what it gets."""

    def __init__(self, away: int = 0) -> None:
        self.asked: list[str] = []
        self.away = away
        self.can_encode = False

    def is_known(self, _data: bytes, _headers: Any) -> bool:
        return "decode" in self.asked

    def decode(self, data: bytes, _headers: Any) -> bytes:
        self._ask("decode")
        return data

    def reader(self, raw_of: Any, headers_of: Any, **_options: Any) -> Any:
        return lambda record: self.decode(raw_of(record), headers_of(record))

    def get_ready(self) -> None:
        self._ask("encode")
        self.can_encode = True

    def encode(self, value: bytes) -> tuple[bytes, tuple[Any, ...]]:
        return value, (("h", b"1"),)

    def _ask(self, what: str) -> None:
        self.away -= 1
        if self.away >= 0:
            raise DependencyUnavailable("the registry does not answer", 3.0)
        self.asked.append(what)


def shy_reading(codec: Shy, aside: Callable[..., Any]) -> RecordAdapter:
    make: Any = lambda _format, **_: codec  # noqa: E731
    return RecordAdapter(codec_of=make, run_blocking=aside)


def test_while_the_registry_is_unavailable_the_handler_is_not_called_and_no_attempt_is_counted() -> None:
    calls: list[bytes] = []
    app = App("shop")

    @app.consume("t", to="out", to_value=BARE, dead_letter="dlq")
    def handle(value: bytes) -> bytes:
        calls.append(value)
        return value

    codec = Shy(away=2)
    tried = attempts(app.handlers[0], shy_reading(codec, asyncio.to_thread))
    for _ in range(2):
        outcome = tried(Record("t", 0, 0, None, b"x"), 1)
        assert isinstance(outcome, Failed)
        assert (outcome.wait, outcome.final, outcome.message) == (3.0, False, "the registry does not answer")
    assert not calls
    assert tried(Record("t", 0, 0, None, b"x"), 1) == Done((ProducerRecord("out", None, b"x", (("h", b"1"),)),))
    assert calls == [b"x"]


async def run(attempted: Awaitable[Any]) -> Any:
    return await attempted


@pytest.mark.parametrize("batch", [None, 5])
def test_an_async_handler_asks_the_registry_aside_and_only_for_what_it_does_not_know(batch: int | None) -> None:
    aside_calls: list[str] = []

    async def aside(function: Callable[..., Any], *arguments: Any) -> Any:
        aside_calls.append(getattr(function, "__name__", "?"))
        return function(*arguments)

    app = App("shop")
    record = Record("t", 0, 0, None, b"x")
    adapter = shy_reading(Shy(), aside)
    if batch:

        async def handle_all(values: list[Any]) -> None: ...

        app.consume("t", value=BARE, batch=batch)(handle_all)
        of_batch = batch_attempts_async(app.handlers[0], adapter)
        for _ in range(2):
            assert asyncio.run(run(of_batch([record], [1]))) == [DONE]
    else:

        async def handle(value: Any) -> None: ...

        app.consume("t", value=BARE)(handle)
        of_one = attempts_async(app.handlers[0], adapter)
        for _ in range(2):
            assert asyncio.run(run(of_one(record, 1))) is DONE
    assert len(aside_calls) == 1


def values(value: bytes) -> None: ...


@pytest.mark.parametrize(
    ("function", "options", "problem"),
    [
        (lambda record: None, {"value": str}, "value= decodes a parameter that it does not take"),
        (values, {"key": str}, "key= decodes a parameter that it does not take"),
        (values, {"headers": str}, "headers= decodes a parameter that it does not take"),
        (values, {"value": 7}, "value=7 is not a decoder"),
        (values, {"to_value": BARE}, "to_value= has no effect without to="),
        (values, {"to_value": int, "to": "out"}, "to_value=<class 'int'> is not an encoder"),
        (lambda headers: None, {"headers": BARE}, "takes no format with a schema"),
        (lambda headers: None, {"headers": {"a": 7}}, "is not a decoder"),
        (lambda key, value: None, {}, r"takes \(key, value\)"),
    ],
)
def test_a_declaration_that_cannot_decode_or_encode_is_refused(
    function: Any, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        App("shop").consume("t", **options)(function)


def test_headers_of_another_type_are_refused() -> None:
    def handle(headers: list[str]) -> None: ...

    with pytest.raises(ConfigError, match=r"type hint of headers is list\[str\]"):
        App("shop").consume("t")(handle)


@pytest.mark.parametrize("format_", [Avro(AVRO), JsonSchema(), Protobuf(Note)])
def test_a_format_without_a_registry_is_refused_before_a_record_flows(format_: Any) -> None:
    with pytest.raises(ConfigError, match="needs a schema registry, and none is set"):
        attempt(values, value=format_)
