"""What an open member's thread wants done by the thread that owns the consumer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.core.records.record import TopicPartition as Place


@dataclass(frozen=True, slots=True)
class Take:
    """These are ours from now on."""

    places: tuple[Place, ...]
    done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Finish and commit these, and let go of them."""

    places: tuple[Place, ...]
    done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Lose:
    """These may be somebody else's already. ``losses`` counts such notices."""

    places: tuple[Place, ...]
    losses: int


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer to a commit, with the reasons for what was refused."""

    commits: Mapping[Place, tuple[int, str]]
    refused: Mapping[Place, str]


@dataclass(frozen=True, slots=True)
class Broke:
    """The membership is over, because of this."""

    error: BaseException


Notice = Take | GiveUp | Lose | Committed | Broke
