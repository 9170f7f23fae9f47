"""Says why bytes are not a Protobuf message, and at which field; the error of the Protobuf library does not."""

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from penstock.core.records.varints import VarintError, read_varint

_VARINT, _EIGHT, _SIZED, _GROUP, _END_GROUP, _FOUR = 0, 1, 2, 3, 4, 5
_WIDTHS = {_EIGHT: 8, _FOUR: 4}
_STEPS = 100_000
_DEEPEST = 100

_TYPES = {
    value: name.removeprefix("TYPE_").lower()
    for name, value in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


def why_not(data: bytes, descriptor: Descriptor, error: Exception) -> str:
    try:
        _Walk(data).message(descriptor, 0, len(data), "$", 0)
    except _FoundError as found:
        return str(found)
    text = str(error).splitlines()
    return f"it is not a {descriptor.full_name}: {text[0] if text else type(error).__name__}"


class _FoundError(Exception):
    """What is wrong, and at which field."""


class _Walk:
    """Reads through a message as a parser does, without building values."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._steps = _STEPS

    def message(self, descriptor: Descriptor, at: int, end: int, path: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise _FoundError("it is nested too deeply")
        while at < end:
            self._steps -= 1
            if self._steps < 0:
                raise _FoundError(f"it is not a {descriptor.full_name}, somewhere behind `{path}`")
            tag, at = self._varint(at, end, descriptor.full_name, path)
            number, wire = tag >> 3, tag & 7
            field: Any = descriptor.fields_by_number.get(number)
            where = f"{path}.{field.name}" if field is not None else f"{path}.({number})"
            what = _TYPES[field.type] if field is not None else "an unknown field"
            if number == 0 or wire > _FOUR or wire == _END_GROUP:
                raise _FoundError(
                    f"expected a field of {descriptor.full_name}, got the byte 0x{tag & 0xFF:02x} - at `{path}`"
                )
            at = self._field(field, wire, at, end, what, where, depth)

    def _field(self, field: Any, wire: int, at: int, end: int, what: str, where: str, depth: int) -> int:  # noqa: PLR0917
        if wire == _VARINT:
            return self._varint(at, end, what, where)[1]
        if wire == _GROUP:
            raise _FoundError(f"expected {what}, got a group - at `{where}`")
        if wire in _WIDTHS:
            return self._skip(at, end, _WIDTHS[wire], what, where)
        size, at = self._varint(at, end, what, where)
        after = self._skip(at, end, size, what, where)
        if field is not None and field.type == FieldDescriptor.TYPE_MESSAGE:
            self.message(field.message_type, at, after, where, depth + 1)
        if field is not None and field.type == FieldDescriptor.TYPE_STRING:
            try:
                self._data[at:after].decode()
            except UnicodeDecodeError as error:
                raise _FoundError(
                    f"expected string, got bytes that are not UTF-8 ({error.reason}) - at `{where}`"
                ) from None
        return after

    def _varint(self, at: int, end: int, what: str, where: str) -> tuple[int, int]:
        try:
            return read_varint(self._data, at, end=end)
        except VarintError:
            raise _FoundError(f"expected {what}, got a number without an end - at `{where}`") from None

    @staticmethod
    def _skip(at: int, end: int, count: int, what: str, where: str) -> int:
        if count > end - at:
            how_far = f"{end - at:,} of {count:,} bytes"
            raise _FoundError(f"expected {what}, but the value ends there ({how_far}) - at `{where}`")
        return at + count
