"""Single keys from the terminal, without Enter, for commands that draw a live screen."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

try:
    import termios
    import tty
except ImportError:  # Windows
    termios = tty = None  # type: ignore[assignment]

_NAMED = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
}
_CHUNK = 64


@contextmanager
def pressed_keys(take: Callable[[str], None]) -> Iterator[bool]:
    """Call ``take`` with the name of each pressed key, on a thread, while the block runs.

    Yields False, and reads nothing, if standard input is not a terminal. Ctrl+C still interrupts the command.
    """
    if termios is None or not sys.stdin.isatty():
        yield False
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    threading.Thread(target=_read, args=(descriptor, take), name="keys", daemon=True).start()
    try:
        tty.setcbreak(descriptor)
        yield True
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _read(descriptor: int, take: Callable[[str], None]) -> None:
    while chunk := os.read(descriptor, _CHUNK):
        for key in keys_in(chunk.decode(errors="ignore")):
            take(key)


def keys_in(text: str) -> Iterator[str]:
    """Yield the names of the keys that a terminal sent as this text; keys without a name are left out."""
    at = 0
    while at < len(text):
        sequence = next((each for each in _NAMED if len(each) > 1 and text.startswith(each, at)), text[at])
        at += len(sequence)
        if sequence == "\x1b" and text[at : at + 1] in {"[", "O"}:  # a sequence that we do not know
            at = next(
                (end + 1 for end in range(at + 1, len(text)) if text[end].isalpha() or text[end] == "~"), len(text)
            )
            continue
        if sequence in _NAMED:
            yield _NAMED[sequence]
        elif sequence.isprintable():
            yield sequence
