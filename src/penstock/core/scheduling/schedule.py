"""Which records may run now: lanes that are ready, lanes that wait for a retry, and workers that are free.

Both engines schedule with this: a member with all its partitions, and a Spark task with its own stretch of one.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import chain, count
from operator import attrgetter

from penstock.core.scheduling.bundle_size import NOT_QUICK, QUICK
from penstock.core.scheduling.lanes import AnyRecord, Epoch, Lane, Order, Run

# The lanes of an epoch that no key names. Keys are bytes, so these cannot meet one.
_WHOLE_PARTITION = "partition"
_UNORDERED = "unordered"

# After a record of a whole partition was stuck or failed, the keys of so many offsets have their own lanes.
_APART = 20_000

Later = tuple[AnyRecord, float]
"""A record that is tried again, and when."""


class Schedule:
    """The lanes of any number of epochs.

    Args:
        order: What makes a lane: the partition, the key, or nothing.
        null_keys_in_order: Whether records without a key share a lane, where keys make lanes.
        concurrency: Workers that may be busy at once.
        batch: How many records a worker gets at once; those of different lanes may be in one batch.
        linger: Seconds that an incomplete batch waits for more.
        offset_of, key_of: How to read a record, whatever the engine passes on as one.
    """

    def __init__(
        self,
        *,
        order: Order,
        concurrency: int,
        null_keys_in_order: bool = False,
        batch: int | None = None,
        linger: float = 0.0,
        offset_of: Callable[[AnyRecord], int] = attrgetter("offset"),
        key_of: Callable[[AnyRecord], bytes | None] = attrgetter("key"),
    ) -> None:
        self._order = order
        self._keyless = None if null_keys_in_order else _UNORDERED
        self._concurrency = concurrency
        self._batch = batch
        self._linger = linger
        self._linger_until: float | None = None
        self._offset_of = offset_of
        self._key_of = key_of
        self._ready: deque[Lane] = deque()
        self._backoffs: list[tuple[float, int, Lane]] = []
        self._numbers = count()
        self._busy = 0

    # Records come in and go to workers.

    def deliver(self, epoch: Epoch, records: Sequence[AnyRecord]) -> None:
        """Put records of this epoch on their lanes, in the order of their offsets."""
        if self._order == "key" and not epoch.whole:
            self._deliver_by_key(epoch, records)
        elif records:
            self._lane(epoch, _UNORDERED if self._order == "none" else _WHOLE_PARTITION).waiting.extend(records)

    def _deliver_by_key(self, epoch: Epoch, records: Sequence[AnyRecord]) -> None:
        find, keyless = epoch.lanes.get, self._keyless
        # Written out for speed: this runs for every record, and nearly always its lane is there.
        for key, record in zip(map(self._key_of, records), records):  # noqa: B905 - checking costs, and both are one
            lane = find(key)
            if lane is None:
                lane = self._lane(epoch, keyless if key is None else key)
            lane.waiting.append(record)

    def _lane(self, epoch: Epoch, key: Hashable) -> Lane:
        """The lane of this key; a new one is ready as soon as it has a record."""
        lane = epoch.lanes.get(key)
        if lane is None:
            lane = epoch.lanes[key] = Lane(epoch, key, ordered=key is not _UNORDERED, mixed=epoch.whole)
            self._ready.append(lane)
        return lane

    # With keys, a partition is divided into their lanes, or whole while that would cost more than it gains.

    def shape(self, epochs: Iterable[Epoch], size: int) -> None:
        """Let partitions be whole as long as bundles of this size say that the handler is quick.

        Then the keys of a partition share one lane: that keeps the order of each, and with a quick handler no other
        worker would gain by what it holds up. It ends as soon as that may not be so any more: a record is stuck or to
        be tried again (``put_back``), or records take longer now.
        """
        if self._order != "key" or self._batch or NOT_QUICK <= size < QUICK:
            return
        for epoch in epochs:
            if size < NOT_QUICK:
                if epoch.whole and not epoch.running:
                    self._divide(epoch)
            elif not epoch.whole and not epoch.running and epoch.dispatching and epoch.gate is None:
                self._gather(epoch)

    def _gather(self, epoch: Epoch) -> None:
        lanes = epoch.lanes.values()
        if (epoch.tracker.position or 0) < epoch.whole_from or epoch.parked or any(lane.held for lane in lanes):
            return
        records = sorted(chain.from_iterable(lane.waiting for lane in lanes), key=self._offset_of)
        for lane in lanes:
            lane.waiting.clear()
        epoch.lanes.clear()
        epoch.whole = True
        self.deliver(epoch, records)

    def _divide(self, epoch: Epoch) -> None:
        """What waits in the mixed lane goes to the lanes of its keys."""
        epoch.whole = False
        mixed = epoch.lanes.pop(_WHOLE_PARTITION, None)
        if mixed is not None:
            self._deliver_by_key(epoch, mixed.waiting)
            mixed.waiting = deque()

    def _divide_behind(self, run: Run, left: Sequence[AnyRecord], retries: Sequence[Later]) -> None:
        """The same, where a record of a mixed run is still with its worker, or is tried again: only its key waits."""
        epoch, stuck = run.epoch, run.before
        if epoch.lanes.get(_WHOLE_PARTITION) is not run.lane:
            return
        run.lane.waiting.extendleft(reversed(left))
        if stuck is not None and stuck.records:
            stuck.lane = self._set_apart(epoch, stuck.records[-1])
        for record, at in retries:
            lane = self._set_apart(epoch, record)
            lane.waiting.append(record)
            self._back_off(lane, at)
        epoch.whole_from = (epoch.tracker.position or 0) + _APART
        self._divide(epoch)

    def _set_apart(self, epoch: Epoch, record: AnyRecord) -> Lane:
        """A lane for the key of this record, or for itself where it has no order, that is held already."""
        key = self._key_of(record)
        name = _alone(self._offset_of(record)) if key is None and self._keyless is _UNORDERED else key
        lane = epoch.lanes[name] = Lane(epoch, name, held=True)
        return lane

    @property
    def has_ready(self) -> bool:
        """Whether some lane would have a record for a worker that is free."""
        return bool(self._ready)

    def take(self, now: float, size: int) -> list[list[Run]]:
        """Runs that may start now, in one bundle of about ``size`` records for each worker that is free."""
        while self._backoffs and self._backoffs[0][0] <= now:
            lane = heappop(self._backoffs)[2]
            lane.held = False
            self._make_ready(lane)
        bundles = []
        while self._ready and self._busy < self._concurrency and not self._lingers(now):
            bundle = self._bundle(self._batch or size)
            if bundle:
                self._busy += 1
                bundles.append(bundle)
        return bundles

    def _lingers(self, now: float) -> bool:
        """Whether what is ready waits a while for more, because it does not fill a batch yet."""
        if not self._batch:
            return False
        waiting = 0
        for lane in self._ready:
            waiting += len(lane.waiting)
            if waiting >= self._batch:
                self._linger_until = None
                return False
        if self._linger_until is None:
            self._linger_until = now + self._linger
        if now < self._linger_until:
            return True
        self._linger_until = None
        return False

    def _bundle(self, size: int) -> list[Run]:
        # Written out for speed: with keys there are nearly as many runs as records.
        bundle, room, ready, offset_of = [], size, self._ready, self._offset_of
        while ready and room > 0:
            lane = ready.popleft()
            waiting, epoch = lane.waiting, lane.epoch
            if not waiting:  # emptied since: its partition was revoked or gave records back
                continue
            if len(waiting) <= room and offset_of(waiting[-1]) < epoch.bitmap_end > epoch.highest_taken:
                records = list(waiting)
                waiting.clear()
            else:
                fitting = epoch.map_room(lane, min(room, len(waiting)), offset_of)
                if fitting == 0:
                    if offset_of(waiting[0]) != epoch.tracker.commit_point:
                        epoch.park(lane)
                        continue
                    fitting = 1  # the one at the commit point can only make the map smaller
                records = lane.take(fitting)
            count = len(records)
            room -= count
            if lane.ordered:
                lane.held = True
            elif waiting:
                ready.append(lane)
            else:
                del epoch.lanes[lane.key]
            epoch.running += 1
            epoch.in_progress += count
            last = offset_of(records[-1])
            if last > epoch.highest_taken:  # noqa: PLR1730 - a call costs more than it says
                epoch.highest_taken = last
            bundle.append(Run(lane, records))
        return bundle

    @property
    def busy(self) -> int:
        """Bundles that were taken and are not released yet."""
        return self._busy

    def release(self) -> None:
        """A worker is free again."""
        self._busy -= 1

    def wake(self, lanes: Iterable[Lane]) -> None:
        """These waited for something else than a retry, and need not any more."""
        self._ready.extend(lanes)

    def next_due(self) -> float | None:
        """When the next retry is due, or an incomplete batch has waited long enough."""
        due = [self._backoffs[0][0]] if self._backoffs else []
        if self._linger_until is not None:
            due.append(self._linger_until)
        return min(due, default=None)

    def stop_lingering(self) -> None:
        """Nothing more comes in, so there is nothing that a batch could wait for."""
        self._linger = 0.0
        self._linger_until = None

    # Runs come back.

    def complete(self, run: Run) -> None:
        """All of this run is over at once, with nothing to try again: in short what ``put_back`` does at length."""
        lane, count = run.lane, len(run.records)
        epoch = lane.epoch
        run.taken = count
        epoch.running -= 1
        epoch.in_progress -= count
        if lane.ordered:
            lane.held = False
            if lane.waiting:
                self._ready.append(lane)
            elif epoch.lanes.get(lane.key) is lane:
                del epoch.lanes[lane.key]

    @staticmethod
    def collect(run: Run, count: int) -> list[AnyRecord]:
        """The records that the next so many outcomes of this run are of; they are in progress no more."""
        records = run.records[run.taken : run.taken + count]
        run.taken += count
        run.epoch.in_progress -= count
        return records

    def put_back(self, run: Run, retries: Sequence[Later], *, last: bool) -> None:
        """What is tried again, and, after the ``last`` outcomes of this run, what its worker has not begun."""
        if not run.lane.ordered:
            for record, at in retries:
                self._retry_alone(run.epoch, record, at)
        if last:
            self._end(run, retries)

    def _end(self, run: Run, retries: Sequence[Later]) -> None:
        """The worker does no more of this run; what it left goes back."""
        epoch, left = run.epoch, run.records[run.taken :]
        epoch.running -= 1
        epoch.in_progress -= len(left)
        if run.lane.mixed and (retries or run.before is not None):
            self._divide_behind(run, left, retries)
        elif run.lane.ordered:
            self._put_back(run.lane, left, retries)
        elif left and epoch.dispatching:
            self._lane(epoch, _UNORDERED).waiting.extendleft(reversed(left))

    def _put_back(self, lane: Lane, left: Sequence[AnyRecord], retries: Sequence[Later]) -> None:
        """The worker is through with this lane; what it left goes back to its head, behind what is tried again."""
        lane.held = False
        if not lane.epoch.dispatching:
            return
        lane.waiting.extendleft(reversed(left))
        lane.waiting.extendleft(record for record, _ in reversed(retries))
        if retries:
            self._back_off(lane, retries[0][1])
        else:
            self._make_ready(lane)

    def _retry_alone(self, epoch: Epoch, record: AnyRecord, at: float) -> None:
        """A record without an order waits for its next attempt in a lane of its own."""
        if epoch.dispatching:
            lane = Lane(epoch, _alone(self._offset_of(record)), waiting=deque([record]))
            epoch.lanes[lane.key] = lane
            self._back_off(lane, at)

    def _back_off(self, lane: Lane, at: float) -> None:
        lane.held = True
        heappush(self._backoffs, (at, next(self._numbers), lane))

    def _make_ready(self, lane: Lane) -> None:
        if lane.waiting:
            self._ready.append(lane)
        elif lane.epoch.lanes.get(lane.key) is lane:
            del lane.epoch.lanes[lane.key]


def _alone(offset: int) -> Hashable:
    """The name of a lane for one record that has no order."""
    return ("alone", offset)
