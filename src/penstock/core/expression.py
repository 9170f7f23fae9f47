"""Filters that an operator writes as a Python expression, such as ``value["amount"] > 100 and key.startswith("a")``.

The expression is the operator's own, as in awk; the records are not, and only ever values in it.
"""

from collections.abc import Mapping
from types import CodeType, MappingProxyType
from typing import Any

from penstock.errors import ConfigError

_ALLOWED = MappingProxyType(
    {
        each.__name__: each
        for each in (abs, all, any, bool, dict, float, int, len, list, max, min, set, sorted, str, sum)
    }
)
NAMES = ("key", "value", "headers", "topic", "partition", "offset", "timestamp", "reason", "message", "source", "group")


class Expression:
    """Compiled once; what it raises for a record is no match, and is counted with an example."""

    def __init__(self, text: str, *, option: str = "--where") -> None:
        self.misses = 0
        self.example = ""
        try:
            self._code: CodeType = compile(text, option, "eval")
        except (SyntaxError, ValueError) as error:
            raise ConfigError(
                f"{option} is not an expression: {getattr(error, 'msg', error)}.",
                hint='Write Python, such as value["amount"] > 100; there are ' + ", ".join(NAMES) + ".",
            ) from None
        unknown = sorted(name for name in self._names(self._code) if name not in NAMES and name not in _ALLOWED)
        if unknown:
            raise ConfigError(f"{option} knows no {unknown[0]!r}.", hint=f"There are {', '.join(NAMES)}.")

    @staticmethod
    def _names(code: CodeType) -> set[str]:
        """Names that are looked up as such; those behind a dot are attributes, which only records' values have."""
        import dis  # noqa: PLC0415 - only for those who write one

        found = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_NAME", "LOAD_GLOBAL")}
        inner = (each for each in code.co_consts if isinstance(each, CodeType))
        return found.union(*(Expression._names(each) for each in inner))

    def matches(self, values: Mapping[str, Any]) -> bool:
        try:
            # Names are passed as globals, so that comprehensions see them too.
            return bool(eval(self._code, {"__builtins__": dict(_ALLOWED), **values}))  # noqa: S307 - see the module
        except Exception as error:  # noqa: BLE001 - whatever an expression meets in a record
            self.misses += 1
            self.example = self.example or f"{type(error).__name__}: {error}"
            return False
