"""Says why bytes do not fit their Avro schema, and at which field; fastavro's errors do not."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from fastavro import schemaless_reader
from fastavro.read import SchemaResolutionError
from fastavro.validation import ValidationError, validate

from penstock.codecs.avro_schemas import NUMBERS, arrays_in, described, kind_of, named_types, resolved, smallest
from penstock.core.failures.outcome import Undecodable
from penstock.core.records.varints import LONGEST, VarintError, from_zigzag, read_varint

# A union is a level too. The walk takes three Python calls for each level, and Python allows a thousand.
_DEEPEST = 250
# How many parts of a value the search for the fault reads; in a large value the fault may be far behind.
_STEPS = 100_000
_FIXED_WIDTH = {"boolean": 1, "float": 4, "double": 8, "null": 0}


def refuse_unbounded(writer: Any) -> None:
    """Refuse arrays of items that take no bytes: a value of a few bytes could claim billions of them."""
    names = named_types(writer)
    for array in arrays_in(writer):
        if smallest(array["items"], names) == 0:
            raise Undecodable(
                f"its schema has an array of {described(array['items'])}, which takes no bytes, so that a few bytes "
                "could claim any number of them"
            )


def refuse_deep(data: bytes, start: int, writer: Any) -> None:
    """Read through a value of a recursive schema before fastavro does, and refuse a deeply nested one."""
    try:
        _Walk(data, start, named_types(writer), steps=len(data)).value(writer, "$")
    except _FoundError as found:
        raise Undecodable(str(found)) from None


def why_not(data: bytes, start: int, writer: Any, reader: Any, error: Exception) -> str:
    if isinstance(error, SchemaResolutionError):
        found = _mismatch(writer, reader, _Names(named_types(writer), named_types(reader)), "$", ())
        return f"it was written with a schema that cannot be read as this one: {found or error}"
    try:
        _Walk(data, start, named_types(writer)).value(writer, "$")
    except _FoundError as found:
        return str(found)
    return f"its bytes do not fit its schema: {type(error).__name__}: {error}".rstrip(": ")


def why_unwritable(value: Any, schema: Any, error: Exception) -> str:
    """Use fastavro's validation, which names field and type; the errors of its writer do not."""
    try:
        validate(value, schema, raise_errors=True)
    except ValidationError as invalid:
        return "; ".join(str(each) for each in invalid.errors[:5])
    except Exception:  # noqa: BLE001 - an odd value may break the validation too; then the first error says more
        return f"{type(error).__name__}: {error}"
    return f"{type(error).__name__}: {error}"


class _FoundError(Exception):
    """What is wrong, and at which field."""


class _Walk:
    """Reads through a value as a decoder does, without building it."""

    def __init__(self, data: bytes, at: int, names: Mapping[str, Any], *, steps: int = _STEPS) -> None:
        self._data = data
        self._at = at
        self._names = names
        self._steps = steps
        self._depth = 0

    def value(self, schema: Any, path: str) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _FoundError("it is nested too deeply")
        self._value(schema, path)
        self._depth -= 1

    def _value(self, schema: Any, path: str) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise _FoundError(f"its bytes do not fit its schema, somewhere behind {path}")
        schema, began = resolved(schema, self._names), self._at
        self._part(schema, path)
        if isinstance(schema, Mapping) and "logicalType" in schema:
            self._check_logical(schema, self._data[began : self._at], path)

    def _part(self, schema: Any, path: str) -> None:
        kind = kind_of(schema)
        if kind in _FIXED_WIDTH:
            self._skip(_FIXED_WIDTH[kind], schema, path)
        elif kind in ("int", "long"):
            self._number(schema, path)
        elif kind in ("string", "bytes"):
            text = self._skip(self._number(schema, path), schema, path)
            if kind == "string":
                _check_text(text, path)
        elif kind == "fixed":
            self._skip(int(schema["size"]), schema, path)
        elif kind == "enum":
            self._choice(schema["symbols"], schema, path)
        elif kind == "union":
            self.value(schema[self._choice(schema, schema, path)], path)
        elif kind in ("array", "map"):
            self._blocks(schema, kind, path)
        else:
            for field in schema["fields"]:
                self.value(field["type"], f"{path}.{field['name']}")

    def _blocks(self, schema: Any, kind: str, path: str) -> None:
        index = 0
        while count := self._number(schema, path):
            if count < 0:
                count = -count
                self._number(schema, path)
            for _ in range(count):
                inside = f"{path}[{index}]" if kind == "array" else f"{path}[...]"
                if kind == "map":
                    _check_text(self._skip(self._number("string", inside), "string", inside), inside)
                self.value(schema["items" if kind == "array" else "values"], inside)
                index += 1

    def _choice(self, choices: Any, schema: Any, path: str) -> int:
        index = self._number(schema, path)
        if not 0 <= index < len(choices):
            raise _FoundError(f"expected {described(schema)}, of which there is no number {index} - at `{path}`")
        return index

    def _number(self, schema: Any, path: str) -> int:
        try:
            number, self._at = read_varint(self._data, self._at)
        except VarintError:
            if len(self._data) - self._at < LONGEST:
                self._at = len(self._data)
                self._skip(1, schema, path)  # raises, as nothing is left
            raise _FoundError(f"expected {described(schema)}, got a number without an end - at `{path}`") from None
        return from_zigzag(number)

    def _skip(self, count: int, schema: Any, path: str) -> bytes:
        left = len(self._data) - self._at
        if not 0 <= count <= left:
            how_far = f" ({left:,} of {count:,} bytes)" if count > 1 else ""
            what = f"but the value ends there{how_far}" if count > 0 else f"got a length of {count:,}"
            raise _FoundError(f"expected {described(schema)}, {what} - at `{path}`")
        self._at += count
        return self._data[self._at - count : self._at]

    @staticmethod
    def _check_logical(schema: Any, data: bytes, path: str) -> None:
        """Check that a number or text is also a valid date, UUID and so on."""
        try:
            schemaless_reader(BytesIO(data), schema, None)
        except Exception as error:
            raise _FoundError(f"expected {described(schema)}, got another value ({error}) - at `{path}`") from error


def _check_text(text: bytes, path: str) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise _FoundError(f"expected string, got bytes that are not UTF-8 ({error.reason}) - at `{path}`") from None


class _Names:
    def __init__(self, writer: Mapping[str, Any], reader: Mapping[str, Any]) -> None:
        self.writer = writer
        self.reader = reader


def _mismatch(writer: Any, reader: Any, names: _Names, path: str, inside: tuple[Any, ...]) -> str | None:
    """Return the first field whose written type cannot be read as the reader's type; None if all can."""
    writer, reader = resolved(writer, names.writer), resolved(reader, names.reader)
    if (id(writer), id(reader)) in inside:
        return None
    inside = (*inside, (id(writer), id(reader)))
    if isinstance(writer, list):
        return next(filter(None, (_mismatch(each, reader, names, path, inside) for each in writer)), None)
    if isinstance(reader, list):
        fits = any(_mismatch(writer, each, names, path, inside) is None for each in reader)
        return None if fits else f"expected {described(reader)}, was written as {described(writer)} - at `{path}`"
    return _kind_mismatch(writer, reader, names, path, inside)


def _kind_mismatch(writer: Any, reader: Any, names: _Names, path: str, inside: tuple[Any, ...]) -> str | None:
    was, wanted = kind_of(writer), kind_of(reader)
    if was == wanted == "record":
        return _record_mismatch(writer, reader, names, path, inside)
    if was == wanted and was in ("array", "map"):
        part, suffix = ("items", "[...]") if was == "array" else ("values", "[...]")
        return _mismatch(writer[part], reader[part], names, path + suffix, inside)
    if was == wanted == "enum" and "default" not in reader:
        lost = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
        return (
            f"the symbols {', '.join(lost)} are not among those of {described(reader)} - at `{path}`" if lost else None
        )
    promoted = was in NUMBERS and wanted in NUMBERS and NUMBERS.index(was) <= NUMBERS.index(wanted)
    if was == wanted or promoted or {was, wanted} == {"string", "bytes"}:
        return None
    return f"expected {described(reader)}, was written as {described(writer)} - at `{path}`"


def _record_mismatch(writer: Any, reader: Any, names: _Names, path: str, inside: tuple[Any, ...]) -> str | None:
    known = {_last(writer["name"])}
    if not known & {_last(each) for each in (reader["name"], *reader.get("aliases", ()))}:
        return f"expected {described(reader)}, was written as {described(writer)} - at `{path}`"
    written = {field["name"]: field for field in writer["fields"]}
    for field in reader["fields"]:
        found = next((written[name] for name in (field["name"], *field.get("aliases", ())) if name in written), None)
        where = f"{path}.{field['name']}"
        if found is None:
            if "default" not in field:
                return f"expected {described(field['type'])}, was not written, and there is no default - at `{where}`"
        elif fault := _mismatch(found["type"], field["type"], names, where, inside):
            return fault
    return None


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]
