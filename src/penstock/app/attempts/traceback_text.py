"""A handler's error as text: its message, and its traceback in a bounded number of bytes.

It is rendered once, in the process that raised it, because the error object stays there. Errors often come by the
thousand, so the part that depends only on where an error was raised is cached: the second time costs a look-up.
"""

import linecache
import site
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_stack
from types import CodeType, FrameType, TracebackType

from penstock.core.failures.dead_letter_headers import MAX_TRACEBACK_BYTES, bounded
from penstock.core.failures.outcome import Undecodable, error_message, error_name
from penstock.core.settings import redacted

_MAX_FRAMES = 10  # of each error; those nearest to where it was raised
_MAX_ERRORS = 6  # the error, its causes, and the members of groups
_MAX_LINE_BYTES = 400
_MAX_MEMBERS = 5  # errors that the message of a group names
_MAX_REMEMBERED = 256

_HEADING = "Traceback (most recent call last):"
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"

_PACKAGE = Path(__file__).parents[2]
_OWN, _DEMO = f"{_PACKAGE}/", f"{_PACKAGE / 'demo'}/"
_LIBRARIES = tuple(
    {f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {f"{folder}/" for folder in (*site.getsitepackages(), site.getusersitepackages())}
    | {"<frozen "}
)


@dataclass(frozen=True, slots=True)
class _Raised:
    """Where an error was raised: its innermost frames, how many outer ones are left out, and both as text.

    ``place`` is the innermost line outside of libraries. ``by_library``: Penstock called a library directly, so no code
    of the user is involved. ``codes`` keeps the code objects alive, because the cache looks them up by their addresses.
    """

    frames: tuple[str, ...]
    left_out: int
    text: str
    place: str
    by_library: bool
    codes: tuple[CodeType, ...]


_remembered: dict[tuple[int, ...], _Raised] = {}
_Part = tuple[str, _Raised | None, str]
"""One error of a traceback: the line that introduces it, where it was raised (None: not shown), and its message."""


def described(error: BaseException) -> tuple[str, str]:
    """The message of an error, and its traceback. Only the traceback may be empty."""
    raised = _raised(error.__traceback__)
    message = error_message(error)
    if isinstance(error, BaseExceptionGroup):
        message = f"{message}: {_members(error)}"
    elif not message and raised.place:
        message = f"(no message) raised {raised.place}"
    return redacted(message), redacted(_traceback(error, raised))


def line_outside_of_libraries(error: BaseException) -> str:
    """The innermost line outside of libraries that led to the error; if all are in libraries, the innermost one."""
    frames = [*_frames(error.__traceback__)]
    nearest = next((each for each in reversed(frames) if not _is_library(_file(each))), frames[-1])
    return f"{_file(nearest)}, line {nearest.tb_lineno}"


def stack_of(thread: int, *, inside: str) -> str:
    """Where a thread is now, from the file ``inside`` inwards; empty if the thread has ended."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented, for debugging
    stack = [] if frame is None else list(walk_stack(frame))
    within = next((number for number, (each, _) in enumerate(stack) if each.f_code.co_filename == inside), len(stack))
    shown = [_line_text(*each) for each in reversed(stack[: min(within, _MAX_FRAMES)])]
    return redacted(bounded(_frames_text(shown, within - len(shown)), MAX_TRACEBACK_BYTES))


def _members(group: BaseExceptionGroup[BaseException]) -> str:
    leaves = list(_leaves(group))
    shown = [_last_line(each) for each in leaves[:_MAX_MEMBERS]]
    more = len(leaves) - len(shown)
    return "; ".join([*shown, f"and {more} more"] if more else shown)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each


def _last_line(error: BaseException) -> str:
    name, message = error_name(type(error)), error_message(error)
    return bounded(f"{name}: {message}" if message else name, _MAX_LINE_BYTES)


def _traceback(error: BaseException, raised: _Raised) -> str:
    if error.__cause__ is None and error.__context__ is None and not isinstance(error, BaseExceptionGroup):
        parts = [_part("", error, raised, quiet=isinstance(error, Undecodable))]
    else:
        related, quiet = _related(error, "", [_MAX_ERRORS], set()), isinstance(error, Undecodable)
        parts = [_part(lead, each, _raised(each.__traceback__), quiet=quiet) for lead, each in related]
    if not any(raised for _, raised, _ in parts):
        return ""  # without frames it would only repeat the messages
    text = "\n\n".join(_text(lead, raised.text if raised else "", end) for lead, raised, end in parts)
    return text if bounded(text, MAX_TRACEBACK_BYTES) is text else _shortened(parts)


def _part(lead: str, error: BaseException, raised: _Raised, *, quiet: bool) -> _Part:
    notes = getattr(error, "__notes__", None)
    end = _last_line(error)
    if notes:
        end = f"{end}\n{bounded(redacted(chr(10).join(map(str, notes))), _MAX_LINE_BYTES)}"
    return lead, raised if raised.frames and not (quiet and raised.by_library) else None, end


def _text(lead: str, raised: str, end: str) -> str:
    if lead:
        raised = f"{lead}\n\n{raised}"
    return f"{raised}{end}"


def _frames_text(frames: Sequence[str], left_out: int) -> str:
    lines = [f"  ({left_out} more {'frame' if left_out == 1 else 'frames'} further out)"] if left_out else []
    return "".join(f"{line}\n" for line in (_HEADING, *lines, *frames)) if frames else ""


def _related(error: BaseException, lead: str, left: list[int], seen: set[int]) -> list[tuple[str, BaseException]]:
    """The cause or context of the error, the error, and the members of its group, as Python prints them; each once."""
    if left[0] <= 0 or id(error) in seen:
        return []
    left[0] -= 1
    seen.add(id(error))
    found: list[tuple[str, BaseException]] = []
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        found = _related(before, lead, left, seen)
        if found:
            lead = _CAUSE if error.__cause__ is not None else _CONTEXT
    found.append((lead, error))
    if isinstance(error, BaseExceptionGroup):
        count = len(error.exceptions)
        for number, each in enumerate(error.exceptions, 1):
            found += _related(each, f"Error {number} of {count} in this group:", left, seen)
    return found


def _shortened(parts: Sequence[_Part]) -> str:
    """All errors within the limit of bytes: drops frames, the outermost of the longest error first."""
    frames = [list(raised.frames) if raised else [] for _, raised, _ in parts]
    left_out = [raised.left_out if raised else 0 for _, raised, _ in parts]
    while True:
        texts = map(_frames_text, frames, left_out)
        text = "\n\n".join(_text(lead, where, end) for (lead, _, end), where in zip(parts, texts, strict=True))
        longest = max(range(len(parts)), key=lambda index: sum(map(len, frames[index][1:])))
        if len(text.encode(errors="replace")) <= MAX_TRACEBACK_BYTES or len(frames[longest]) <= 1:
            return bounded(text, MAX_TRACEBACK_BYTES)
        del frames[longest][0]
        left_out[longest] += 1


def _raised(traceback: TracebackType | None) -> _Raised:
    key: list[int] = []
    each = traceback
    while each is not None:
        key += (id(each.tb_frame.f_code), each.tb_lasti)
        each = each.tb_next
    at = tuple(key)
    found = _remembered.get(at)
    if found is None:
        if len(_remembered) >= _MAX_REMEMBERED:
            _remembered.clear()
        found = _remembered[at] = _look_up(traceback)
    return found


def _look_up(traceback: TracebackType | None) -> _Raised:
    frames = [*_frames(traceback)]
    # The outer frames are Penstock's, which called the handler: they are left out. Inner frames of Penstock are shown.
    first = next((index for index, each in enumerate(frames) if not _is_own(_file(each))), len(frames))
    theirs = frames[first:]
    shown = tuple(map(_frame_text, theirs[-_MAX_FRAMES:]))
    left_out = len(theirs) - len(shown)
    nearest = next((each for each in reversed(theirs) if not _is_library(_file(each))), theirs[-1] if theirs else None)
    return _Raised(
        frames=shown,
        left_out=left_out,
        text=_frames_text(shown, left_out),
        place="" if nearest is None else f"in {nearest.tb_frame.f_code.co_name} at {_short(nearest)}",
        by_library=bool(theirs) and _is_library(_file(theirs[0])),
        codes=tuple(each.tb_frame.f_code for each in frames),
    )


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _file(traceback: TracebackType) -> str:
    return traceback.tb_frame.f_code.co_filename


def _is_own(file: str) -> bool:
    return file.startswith(_OWN) and not file.startswith(_DEMO)


def _is_library(file: str) -> bool:
    return file.startswith(_LIBRARIES) or _is_own(file)


def _short(traceback: TracebackType) -> str:
    return f"{Path(_file(traceback)).name}:{traceback.tb_lineno}"


def _frame_text(traceback: TracebackType) -> str:
    return _line_text(traceback.tb_frame, traceback.tb_lineno)


def _line_text(frame: FrameType, number: int | None) -> str:
    file = frame.f_code.co_filename
    where = f'  File "{file}", line {number}, in {frame.f_code.co_name}'
    linecache.checkcache(file)
    line = linecache.getline(file, number or 0, frame.f_globals).strip()
    return f"{where}\n    {bounded(redacted(line), _MAX_LINE_BYTES)}" if line else where
