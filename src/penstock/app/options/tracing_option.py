"""The check of ``tracing=``."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, SetupError

if TYPE_CHECKING:
    from penstock.app.handler import Handler


def check_tracing(handler: "Handler", wrong: Callable[[str, str], ConfigError]) -> None:
    if not isinstance(handler.tracing, bool):
        raise wrong(f"tracing={handler.tracing!r} is not a bool.", "Use True or False.")
    # Without importing it: only an attempt needs the package.
    if handler.tracing and find_spec("opentelemetry") is None:
        raise SetupError(
            f"Handler {handler.name}: tracing=True needs the package opentelemetry-api.",
            hint="Install it: pip install 'penstock[otel]'.",
        )
