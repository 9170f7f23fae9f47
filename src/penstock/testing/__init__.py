"""The testing kit: the real engine on a broker in memory, with a clock that your test moves."""

from penstock.testing.assignor_check import check_assignor
from penstock.testing.bench import Bench
from penstock.testing.dead_letter_view import DeadLetter

__all__ = ["Bench", "DeadLetter", "check_assignor"]
