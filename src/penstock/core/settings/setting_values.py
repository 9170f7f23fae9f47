"""Validates single values, so that a wrong value is reported before any client connects."""

from difflib import get_close_matches
from typing import Any

from penstock.core.settings.names import Numbers, Setting
from penstock.core.settings.secrets import is_secret
from penstock.errors import ConfigError

_FLAGS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def checked_value(setting: Setting, value: Any, *, written: str) -> Any:
    """The value, converted to the setting's type; ``written`` is the name that the user wrote."""
    kind = setting.kind
    if kind == "function":
        if not callable(value):
            raise _wrong(written, value, "is not a function", "The client calls it; pass a function in code.")
        return value
    if isinstance(value, bool) and kind != "flag":
        raise _wrong(written, value, "has the wrong type", _what(setting))
    if not isinstance(value, str | int | float):
        raise ConfigError(f"The setting {written!r} is a {type(value).__name__}.", hint=_what(setting))
    if kind == "text":
        return value if isinstance(value, str) else str(value)
    if kind == "flag":
        return _flag(setting, value, written)
    return _number(setting, kind, value, written) if isinstance(kind, Numbers) else _word(kind, str(value), written)


def _flag(setting: Setting, value: str | float, written: str) -> bool:
    flag = _FLAGS.get(str(value).strip().lower())
    if flag is None:
        raise _wrong(written, value, "is neither true nor false", _what(setting))
    return flag


def _number(setting: Setting, kind: Numbers, value: str | float, written: str) -> float:
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        try:
            number = float(value)
        except ValueError:
            raise _wrong(written, value, "is not a number", _what(setting)) from None
    if kind.whole and number != number // 1:
        raise _wrong(written, value, "is not a whole number", _what(setting))
    if not kind.low <= number <= kind.high:
        raise _wrong(written, value, "is out of range", _what(setting))
    return int(number) if kind.whole else number


def _word(words: frozenset[str], value: str, written: str) -> str:
    """The allowed word. Case does not matter: librdkafka ignores it, and Java writes some words in capitals."""
    for word in words:
        if word.lower() == value.strip().lower():
            return word
    nearest = get_close_matches(value.lower(), sorted(words), n=1)
    guess = f" Did you mean {nearest[0]!r}?" if nearest else ""
    raise _wrong(written, value, "is not an allowed value", f"It takes {', '.join(sorted(words))}.{guess}")


def _what(setting: Setting) -> str:
    if isinstance(setting.kind, Numbers):
        unit = _unit(setting.name)
        number = "a whole number" if setting.kind.whole else "a number"
        return f"It takes {number}{unit}, from {setting.kind.low} to {setting.kind.high}."
    return "It takes true or false." if setting.kind == "flag" else "It takes text."


def _unit(name: str) -> str:
    for ending, unit in ((".ms", "milliseconds"), (".kbytes", "kilobytes"), (".bytes", "bytes")):
        if name.endswith(ending):
            return f" of {unit}"
    return ""


def _wrong(written: str, value: Any, problem: str, hint: str) -> ConfigError:
    # Never print a secret, not even a wrong one.
    shown = "" if is_secret(written) else f"={value!r}"
    return ConfigError(f"The setting {written}{shown} {problem}.", hint=hint)
