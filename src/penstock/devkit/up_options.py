"""The options of ``penstock up``."""

import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from penstock.errors import ConfigError

DEFAULT_BROKERS = 1
DEFAULT_MEMORY = "512m"
_BROKER_COUNTS = (1, 3, 5)
_HIGHEST_PORT = 65_535
_SMALLEST_HEAP = 256 << 20
_MEMORY = re.compile(r"(\d+)([mg])", re.IGNORECASE)
_UNITS = {"m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class UpOptions:
    """``None`` means the value of the last start, or the default at the first. Port 0 means any free port."""

    brokers: int | None = None
    port: int | None = None
    registry: bool = False
    data: Path | None = None
    memory: str | None = None

    def check(self) -> None:
        if self.brokers is not None and self.brokers not in _BROKER_COUNTS:
            raise ConfigError(
                f"The embedded Kafka cannot have {self.brokers} brokers.",
                hint="Use 1, 3 or 5: an even number tolerates no more failures than the odd number below it.",
            )
        if self.port is not None and not 0 <= self.port <= _HIGHEST_PORT:
            raise ConfigError(f"{self.port} is not a port.", hint=f"Use a number from 1 to {_HIGHEST_PORT}.")
        if self.memory is not None:
            check_memory(self.memory)


def check_memory(text: str) -> None:
    """Refuse a heap size that is too small for a broker or too large for this machine."""
    heap = heap_bytes(text)
    if heap < _SMALLEST_HEAP:
        raise ConfigError(f"{text} of memory is too little for a broker.", hint="Use 256m or more.")
    if heap > psutil.virtual_memory().total:
        raise ConfigError(
            f"{text} of memory per broker is more than this machine has.", hint=f"Use less, such as {DEFAULT_MEMORY}."
        )


def heap_bytes(text: str) -> int:
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r} is not an amount of memory.", hint="Write it as 512m or 2g.")
    return int(match[1]) * _UNITS[match[2].lower()]
