"""Finds how many records of a handler should run at once, from how long they take and how many of them fail.

The rule needs no knowledge of what the handler calls. It compares: how long a call takes now, and how long it took when
fewer ran at once. As long as that is the same, more calls at once do more work, and the limit grows. If calls take
longer, they wait for each other, and the limit falls. Now and then, and after each large fall, a *trial* with a smaller
limit shows whether that helps. If it does not, the dependency itself has become slower, and the limit returns.

``tests/concurrency_simulation.py`` compares this rule with others.
"""

from dataclasses import dataclass, field
from math import sqrt

_FIRST = 4
# A limit is judged by a window of calls: of at least so many seconds and calls, and until the mean is known well
# enough, which for calls of very different lengths takes until the last of these times.
_WINDOW_SECONDS = 0.1
_WINDOW_CALLS = 10
_WINDOW_ERROR = 0.02
_DOUBLING_ERROR = 0.1
_LONGEST_WINDOW_SECONDS = 1.0
# A call that the clock measures as shorter counts as this long: a coarse clock, or that of a test, may not move in it.
_SHORTEST_SECONDS = 1e-6
# Calls may take this much longer than with fewer at once, and twice what the means are uncertain by.
_TOLERANCE = 1.05
_UNCERTAINTY = 2.0
# The limit doubles until calls take longer than with fewer at once.
_UNHURRIED = 0.9
# One window lowers the limit at most to this part of it.
_LARGEST_FALL = 0.5
# A fall to this part or less is a trial: the next window shows whether it helped.
_TRIAL_FALL = 0.8
# A trial happens at least this often, and so seldom that it takes only this part of the time.
_TRIAL_SECONDS = 5.0
_TRIAL_PART = 20
# A trial has helped if calls became quicker by this part of what they would have if all had waited for each other.
_HELPED = 0.5
# Calls that became slower by this part with fewer at once: the dependency changed during the trial.
_CHANGED = 0.05
# So many more calls than usual may fail. From the second part on the dependency counts as down.
_FAILED_PART = 0.05
_DOWN_PART = 0.5
# A smaller limit has helped if it lets calls fail less often than this part of before.
_FEWER_FAILURES = 0.8


@dataclass(slots=True)
class _Window:
    """What ended since the limit was set. ``skipped`` calls are not counted: they began under the limit before."""

    skipped: int
    began: float
    calls: int = 0
    succeeded: int = 0
    seconds: float = 0.0
    squares: float = 0.0
    used_up: int = 0  # calls that ended while as many ran as the limit allows


@dataclass(frozen=True, slots=True)
class _Level:
    """What a window showed of one limit. ``seconds`` is the mean of the calls that succeeded, None without any."""

    limit: int
    seconds: float | None
    error: float  # the standard error of ``seconds``
    failed: float  # the part of the calls that failed
    used_up: float  # the part of the calls during which the limit was used up
    calls: int


@dataclass(slots=True)
class AutoConcurrency:
    """The limit of one member's workers, or of one task's. The thread that hands out records owns it."""

    most: int
    limit: int = field(init=False)
    is_on_trial: bool = field(default=False, init=False)
    """Whether the limit is lower for a moment, only to compare."""
    _unhurried: float | None = None  # the mean seconds of a call when calls do not wait for each other
    _error: float = 0.0
    _usual_failures: float = 0.0  # the part of the calls that fails for reasons that no limit changes
    _doubles: bool = True
    _before: _Level | None = None  # what the limit before a trial showed
    _trial_at: float | None = None
    _trial_began: float = 0.0
    _window: _Window | None = None
    _good: int = 0  # the last limit under which calls did not fail more often than usual
    _ceiling: int = 0  # the limit under which they did, which is tried again later
    _raise_at: float = 0.0
    _raise_by: int = 1

    def __post_init__(self) -> None:
        self.limit = min(_FIRST, self.most)
        self._ceiling = self.most + 1

    def observe(self, calls: int, seconds: float, failed: int, *, busy: int, now: float) -> bool:
        """A worker made so many calls of ``seconds`` each, of which some failed, while ``busy`` workers had records.

        Returns whether ``limit`` has changed.
        """
        window = self._window
        if window is None:
            window = self._window = _Window(0, now)
        if window.skipped > 0:
            window.skipped -= calls
            window.began = now
            return False
        window.calls += calls
        if not failed:
            window.succeeded += calls
            window.seconds += calls * seconds
            window.squares += calls * seconds * seconds
        if busy >= self.limit:
            window.used_up += calls
        if not self._is_over(window, now):
            return False
        limit = max(1, min(self.most, self._judge(_level(self.limit, window), now)))
        is_changed = limit != self.limit
        self._window = _Window(self.limit if is_changed else 0, now)
        self.limit = limit
        return is_changed

    def _is_over(self, window: _Window, now: float) -> bool:
        taken = now - window.began
        if taken < _WINDOW_SECONDS or window.calls < max(_WINDOW_CALLS, self.limit):
            return False
        if taken >= _LONGEST_WINDOW_SECONDS:
            return True
        level = _level(self.limit, window)
        enough = _DOUBLING_ERROR if self._doubles else _WINDOW_ERROR
        return level.seconds is None or level.error <= enough * level.seconds

    def _judge(self, level: _Level, now: float) -> int:
        """The next limit, after a window."""
        self.is_on_trial = False
        if self._trial_at is None:
            self._trial_at = now + _TRIAL_SECONDS
        if self._before is not None:
            before, self._before = self._before, None
            self._trial_at = now + max(_TRIAL_SECONDS, _TRIAL_PART * (now - self._trial_began))
            return self._after_trial(before, level)
        if self._is_failing(level):
            if level.limit > self._good:  # it began with the larger limit, so that may be the reason
                self._ceiling, self._raise_at, self._raise_by = level.limit, now + _TRIAL_SECONDS, 1
            return self._fall(level, 1 - level.failed / 2, now)
        self._good = level.limit
        if now >= self._raise_at and self._ceiling <= self.most:
            self._ceiling += self._raise_by
            self._raise_at, self._raise_by = now + _TRIAL_SECONDS, 2 * self._raise_by
        if level.seconds is None:
            return level.limit
        if self._unhurried is None:
            self._learn(level.seconds, level.error)
        elif level.used_up <= _LARGEST_FALL:
            # There is less to do than the limit allows. So calls do not wait for each other, unless others make them.
            self._learn(level.seconds, level.error)
            return level.limit
        elif level.seconds < self._unhurried:
            self._learn(level.seconds, level.error)
        return self._by_duration(level, level.seconds, now)

    def _by_duration(self, level: _Level, seconds: float, now: float) -> int:
        uncertain = _UNCERTAINTY * sqrt(self._error**2 + level.error**2)
        pace = min(1.0, (_TOLERANCE * (self._unhurried or seconds) + uncertain) / seconds)
        if pace < _UNHURRIED:
            self._doubles = False
        if self._trial_at is not None and now >= self._trial_at:
            self.is_on_trial = True
            return self._fall(level, _LARGEST_FALL, now)
        if pace < 1:
            return self._fall(level, max(_LARGEST_FALL, pace), now, room=_room(level.limit))
        larger = level.limit * 2 if self._doubles else level.limit + _room(level.limit)
        return max(level.limit, min(larger, self._ceiling - 1))

    def _is_failing(self, level: _Level) -> bool:
        usual = self._usual_failures
        by_chance = _UNCERTAINTY * sqrt(usual * (1 - usual) / max(1, level.calls))
        return level.failed >= _DOWN_PART or level.failed - usual > _FAILED_PART + by_chance

    def _fall(self, level: _Level, part: float, now: float, *, room: int = 0) -> int:
        limit = max(1, int(level.limit * part) + room)
        if limit <= level.limit * _TRIAL_FALL:
            self._before, self._trial_began = level, now
        return limit

    def _after_trial(self, before: _Level, level: _Level) -> int:
        if level.failed >= _DOWN_PART:  # no comparison: hardly anything succeeds
            self._doubles = True
            return level.limit // 2
        if self._is_failing(before):
            return self._after_failures(before, level)
        if level.seconds is None or before.seconds is None:
            return level.limit
        quicker = 1 - level.seconds / before.seconds
        if quicker < -_CHANGED:  # the dependency changed meanwhile, so there is nothing to compare
            return level.limit
        if quicker < _HELPED * (1 - level.limit / before.limit):
            self._learn(level.seconds, level.error)
            return before.limit
        self._usual_failures = min(self._usual_failures, level.failed)
        if self._unhurried is None or level.seconds < self._unhurried:
            self._learn(level.seconds, level.error)
        return max(level.limit, int(before.limit * level.seconds / before.seconds)) + _room(level.limit)

    def _after_failures(self, before: _Level, level: _Level) -> int:
        if level.failed < _FEWER_FAILURES * before.failed:
            self._doubles = before.failed >= _DOWN_PART and before.limit < self._ceiling
            return level.limit
        self._usual_failures, self._ceiling = level.failed, self.most + 1
        return before.limit

    def _learn(self, seconds: float, error: float) -> None:
        self._unhurried, self._error = seconds, error


def _level(limit: int, window: _Window) -> _Level:
    succeeded, calls = window.succeeded, window.calls
    failed, used_up = (1 - succeeded / calls, window.used_up / calls) if calls else (0.0, 0.0)
    if not succeeded:
        return _Level(limit, None, 0.0, failed, used_up, calls)
    mean = max(_SHORTEST_SECONDS, window.seconds / succeeded)
    variance = max(0.0, window.squares / succeeded - mean * mean)
    return _Level(limit, mean, sqrt(variance / succeeded), failed, used_up, calls)


def _room(limit: int) -> int:
    """By how much the limit may be larger than what calls show: there must be something to find out."""
    return max(1, int(sqrt(limit) / 2))
