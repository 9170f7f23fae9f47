"""Expectations: conditions on the rows of a source, and what happens to a row that does not meet one."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from penstock.errors import ConfigError

UnmetAction = Literal["drop", "dead_letter", "fail"]


def checked_expectations(given: Any) -> dict[str, UnmetAction]:
    """The expectations in order. Only Spark can check the conditions themselves, when the pipeline starts."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigError(f"expect={given!r} is not a mapping.", hint='Write expect={"amount > 0": "dead_letter"}.')
    for condition, action in given.items():
        if not isinstance(condition, str) or not condition.strip():
            raise ConfigError(
                f"expect= has the condition {condition!r}, which is not SQL.", hint='Write a text such as "amount > 0".'
            )
        if action not in get_args(UnmetAction):
            raise ConfigError(
                f"expect={{{condition!r}: {action!r}}} does not say what happens to the row.",
                hint='Use "drop", "dead_letter" or "fail".',
            )
    return dict(given)
