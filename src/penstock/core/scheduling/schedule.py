"""Which records may run now: lanes that are ready, lanes that wait for a retry, and free workers.

Both engines use it: a member of the local engine for all of its partitions, a Spark task for its part of a partition.

With ``order="key"``, a partition has a lane for each key. There is one exception, for very quick handlers only (a few
microseconds a record): sorting their records by key costs as much as handling them, and more workers gain nothing. So
while the handler is that quick, a partition is one mixed lane for all keys, which keeps the order of each key. As soon
as a record is stuck, must be retried, or takes longer, the mixed lane is split into a lane for each key.
docs/internals/dispatching.md has the measurement that justifies this.
"""

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from itertools import chain
from operator import attrgetter

from penstock.core.scheduling.backoffs import Backoffs
from penstock.core.scheduling.bundle_size import NOT_QUICK, QUICK
from penstock.core.scheduling.fair_queue import ReadyLanes
from penstock.core.scheduling.lanes import AnyRecord, Epoch, Lane, LaneRun, Order, name_alone
from penstock.core.scheduling.rate_waits import RateWaits

# Names of lanes that belong to no key. Keys are bytes, so they cannot collide with these.
_WHOLE_PARTITION = "partition"
_UNORDERED = "unordered"

# After a record of a mixed lane was stuck or failed, each key keeps its own lane for so many offsets.
_SPLIT_OFFSETS = 20_000

Again = tuple[AnyRecord, float]
"""A record to try again, and when."""


class Schedule:
    """The lanes of any number of epochs.

    Args:
        order: Which records share a lane: those of a partition, those of a key, or none.
        null_keys_in_order: With order by key, whether records without a key share one lane.
        concurrency: How many bundles may be out at once, with workers or queued for them.
        batch: How many records a worker gets at once. Records of different lanes may share a batch.
        linger: How many seconds an incomplete batch waits for more records.
        offset_of, key_of: Read the offset and the key of the engine's kind of record.
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
        self._concurrency = self._workers = concurrency
        self._batch, self._linger = batch, linger
        self._linger_until: float | None = None
        self._offset_of = offset_of
        self._key_of = key_of
        self._ready: ReadyLanes = deque()
        self._backoffs = Backoffs()
        self._busy = 0
        self._mixes = False  # whether some partition may have a mixed lane
        self.rates = RateWaits(lambda: len(self._ready), self._make_ready, offset_of)

    # Records come in and go to workers.

    def deliver(self, epoch: Epoch, records: Sequence[AnyRecord]) -> None:
        """Append records of this epoch, in the order of their offsets, to their lanes."""
        if self._order == "key" and not epoch.lanes.mixed:
            self._deliver_by_key(epoch, records)
        elif records:
            self._lane(epoch, _UNORDERED if self._order == "none" else _WHOLE_PARTITION).waiting.extend(records)

    def _deliver_by_key(self, epoch: Epoch, records: Sequence[AnyRecord]) -> None:
        find, keyless = epoch.lanes.by_key.get, self._keyless
        # Inlined for speed, because this runs for every record.
        for key, record in zip(map(self._key_of, records), records):  # noqa: B905 - the check costs; both have one length
            lane = find(key)
            if lane is None:
                lane = self._lane(epoch, keyless if key is None else key)
            lane.waiting.append(record)

    def deliver_later(self, epoch: Epoch, record: AnyRecord, at: float) -> None:
        """Append a record that failed in an earlier epoch: its next attempt is due at this time, and its lane waits.

        Call it before the records behind it are delivered.
        """
        key = self._key_of(record) if self._order == "key" else _WHOLE_PARTITION
        if self._order == "none" or (key is None and self._keyless is _UNORDERED):
            self._retry_alone(epoch, record, at)
            return
        lane = epoch.lanes.by_key.get(key)
        if lane is None:
            lane = epoch.lanes.by_key[key] = Lane(epoch, key)
            self._backoffs.add(lane, at)
        lane.waiting.append(record)

    def _lane(self, epoch: Epoch, key: Hashable) -> Lane:
        """The lane of this key. A new one is queued as ready, so the caller must give it a record."""
        lanes = epoch.lanes
        lane = lanes.by_key.get(key)
        if lane is None:
            lane = lanes.by_key[key] = Lane(epoch, key, ordered=key is not _UNORDERED, mixed=lanes.mixed)
            self._ready.append(lane)
        return lane

    def mix_or_split(self, epochs: Collection[Epoch], size: int) -> None:
        """Give partitions one mixed lane while bundles of this size show that the handler is quick.

        A mixed lane keeps the order of each key. It is split into a lane for each key as soon as it could delay other
        keys: when a record is stuck or must be retried (``put_back``), or when records take longer.
        """
        size = 1 if self.rates.is_on else size  # a record that waits for its rate must hold up only its own key
        if self._order != "key" or self._batch or NOT_QUICK <= size < QUICK:
            return
        if size >= QUICK:
            for epoch in epochs:
                if not (epoch.lanes.mixed or epoch.lanes.running) and epoch.dispatching and epoch.gate is None:
                    self._mix(epoch)
        elif self._mixes:
            for epoch in epochs:
                if epoch.lanes.mixed and not epoch.lanes.running:
                    self._split(epoch)
            self._mixes = any(epoch.lanes.mixed for epoch in epochs)

    def _mix(self, epoch: Epoch) -> None:
        lanes, position = epoch.lanes, epoch.tracker.position or 0
        if position < lanes.mixed_again_from or lanes.parked or any(lane.held for lane in lanes.by_key.values()):
            return
        records = sorted(chain.from_iterable(lane.waiting for lane in lanes.by_key.values()), key=self._offset_of)
        lanes.clear()
        lanes.mixed = self._mixes = True
        self.deliver(epoch, records)

    def _split(self, epoch: Epoch) -> None:
        """Move the records that wait in the mixed lane to a lane for each key."""
        epoch.lanes.mixed = False
        mixed = epoch.lanes.by_key.pop(_WHOLE_PARTITION, None)
        if mixed is not None:
            self._deliver_by_key(epoch, mixed.waiting)
            mixed.waiting = deque()

    def _split_behind(self, run: LaneRun, left: Sequence[AnyRecord], retries: Sequence[Again]) -> None:
        """Split the mixed lane while a worker is stuck with one of its records, or while one waits for a retry.

        Only the key of that record must wait: it gets a lane that is held already.
        """
        epoch, stuck = run.epoch, run.split_from
        if epoch.lanes.by_key.get(_WHOLE_PARTITION) is not run.lane:
            return
        run.lane.waiting.extendleft(reversed(left))
        if stuck is not None and stuck.records:
            stuck.lane = self._add_held_lane(epoch, stuck.records[-1])
        for record, at in retries:
            lane = self._add_held_lane(epoch, record)
            lane.waiting.append(record)
            self._backoffs.add(lane, at)
        epoch.lanes.mixed_again_from = (epoch.tracker.position or 0) + _SPLIT_OFFSETS
        self._split(epoch)

    def _add_held_lane(self, epoch: Epoch, record: AnyRecord) -> Lane:
        """Add a held lane for the key of this record; for the record alone, if it has no key and so no order."""
        key = self._key_of(record)
        name = name_alone(self._offset_of(record)) if key is None and self._keyless is _UNORDERED else key
        lane = epoch.lanes.by_key[name] = Lane(epoch, name, held=True)
        return lane

    @property
    def has_ready(self) -> bool:
        """Whether some lane has a record, and a free worker to start it, and the handler's rate lets it begin."""
        return bool(self._ready) and self._busy < self._concurrency and not self.rates.is_shut

    def take(self, now: float, size: int) -> list[list[LaneRun]]:
        """Take runs that may start now: a bundle of about ``size`` records for each free worker."""
        self._end_backoffs(now)
        rates = self.rates
        if rates.is_on:
            size = rates.begin_turn(now, self._busy, self._workers)
        bundles = []
        while self._ready and self._busy < self._concurrency and not rates.is_shut and not self._lingers(now):
            bundle = self._bundle(self._batch or size)
            if bundle:
                self._busy += 1
                bundles.append(bundle)
                if rates.is_on:
                    rates.handed_out(bundle, self._busy, self._workers)
        return bundles

    def take_one(self, now: float) -> list[list[LaneRun]]:
        """Take a single record that may start now, if there is one and a worker is free."""
        self._end_backoffs(now)
        self.rates.begin_turn(now, self._busy, self._workers)
        bundle = self._bundle(1) if self.has_ready else []
        self._busy += bool(bundle)
        if bundle:
            self.rates.handed_out(bundle, self._busy, self._workers)
        return [bundle] if bundle else []

    def _end_backoffs(self, now: float) -> None:
        for lane in self._backoffs.end(now):
            self._make_ready(lane)

    def _lingers(self, now: float) -> bool:
        """Whether the ready records wait for more, because they do not fill a batch and ``linger`` is not over."""
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

    def _bundle(self, size: int) -> list[LaneRun]:
        # Inlined: with order by key there are nearly as many runs as records.
        bundle, room, ready, offset_of, rates = [], size, self._ready, self._offset_of, self.rates.by_tenant
        while ready and room > 0:
            lane = ready.popleft()
            waiting = lane.waiting
            # Empty: its partition was revoked since, or back-pressure dropped records.
            if not (waiting if rates is None else rates.may_begin(lane)):
                continue
            epoch = lane.epoch
            lanes, map_room = epoch.lanes, epoch.map_room
            wanted = len(waiting) if len(waiting) <= room else room  # noqa: FURB136 - min() is a call
            if offset_of(waiting[wanted - 1]) < map_room.bitmap_end > map_room.highest_taken:
                if wanted == len(waiting):
                    records = list(waiting)
                    waiting.clear()
                else:
                    records = lane.take(wanted)
            else:
                records = lane.take(self._fitting(lane, wanted))
                if not records:
                    continue
            count = len(records)
            room -= count
            if lane.ordered:
                lane.held = True
            elif waiting:
                ready.append(lane)
            else:
                del lanes.by_key[lane.key]
            lanes.running += 1
            lanes.in_progress += count
            last = offset_of(records[-1])
            if last > map_room.highest_taken:  # noqa: PLR1730 - max() is a call, which costs too much here
                map_room.highest_taken = last
            bundle.append(LaneRun(lane, records))
        return bundle

    def _fitting(self, lane: Lane, wanted: int) -> int:
        """How many of the first ``wanted`` records may start now; with 0, the lane waits until something changes."""
        epoch = lane.epoch
        if epoch.is_paused:
            epoch.lanes.paused.append(lane)
            return 0
        fitting = epoch.fitting(lane, wanted, self._offset_of)
        if fitting == 0:
            if self._offset_of(lane.waiting[0]) == epoch.tracker.commit_point:
                return 1  # finishing the record at the commit point can only make the map smaller
            epoch.park(lane, self._offset_of(lane.waiting[0]))
        return fitting

    @property
    def busy(self) -> int:
        """How many bundles were taken and not released yet."""
        return self._busy

    def release(self) -> None:
        """A worker finished a bundle, so another bundle may be taken."""
        self._busy -= 1

    def set_concurrency(self, concurrency: int, ahead: int = 0) -> None:
        """So many bundles may be out at once from now on, and so many more may be queued for busy workers."""
        self._concurrency, self._workers = concurrency + ahead, concurrency

    def add_ready(self, lanes: Iterable[Lane]) -> None:
        """Queue lanes that were parked or paused, and may run now."""
        self._ready.extend(lanes)

    @staticmethod
    def pause(epoch: Epoch) -> None:
        """Hand out no record of this epoch until ``resume``; its lanes keep their records."""
        epoch.is_paused = True
        epoch.map_room.bitmap_end = 0  # so that ``_bundle`` looks at ``is_paused``, which costs nothing otherwise

    def resume(self, epoch: Epoch) -> None:
        epoch.is_paused = False
        paused, epoch.lanes.paused = epoch.lanes.paused, []
        self.add_ready(paused)

    def backoffs(self) -> list[tuple[float, Lane]]:
        """The lanes that wait for a retry, and when each is due."""
        return [*self._backoffs]

    def next_due(self) -> float | None:
        """When the next retry or rate is due, or the ``linger`` of an incomplete batch is over; None if none is."""
        if not self._backoffs and not self.rates.is_on and self._linger_until is None:
            return None
        due = [*self._backoffs.next_due(), *self.rates.next_due()]
        # Without a ready lane and a free worker, ``take`` does not end the linger: its time may be over long ago.
        if self._linger_until is not None and self._ready and self._busy < self._concurrency:
            due += self.rates.not_before(self._linger_until)
        return min(due, default=None)

    def forget_ended(self) -> None:
        """Forget the lanes of epochs that have ended, which wait for a retry or for their rate."""
        self._backoffs.forget_ended()
        self.rates.forget_ended()

    def stop_lingering(self) -> None:
        """Hand out incomplete batches at once, because no more records will arrive."""
        self._linger, self._linger_until = 0.0, None

    # Workers report runs.

    def complete(self, run: LaneRun) -> None:
        """Every record of this run succeeded. A short form of ``collect`` and ``put_back``, for speed."""
        lane, count = run.lane, len(run.records)
        lanes = lane.epoch.lanes
        run.collected = count
        lanes.running -= 1
        lanes.in_progress -= count
        if lane.ordered:
            lane.held = False
            if lane.waiting:
                self._ready.append(lane)
            elif lanes.by_key.get(lane.key) is lane:
                del lanes.by_key[lane.key]

    @staticmethod
    def collect(run: LaneRun, count: int) -> list[AnyRecord]:
        """Take the records of this run that the next ``count`` outcomes belong to; they are no longer in progress."""
        records = run.records[run.collected : run.collected + count]
        run.collected += count
        run.epoch.lanes.in_progress -= count
        return records

    def put_back(self, run: LaneRun, retries: Sequence[Again], *, last: bool) -> None:
        """Put records to retry back on lanes; after the ``last`` outcomes of this run, also those never attempted."""
        if not run.lane.ordered:
            for record, at in retries:
                self._retry_alone(run.epoch, record, at)
        if last:
            self._end_run(run, retries)

    def _end_run(self, run: LaneRun, retries: Sequence[Again]) -> None:
        """The worker attempts no more records of this run: put the rest back."""
        epoch, left = run.epoch, run.records[run.collected :]
        epoch.lanes.running -= 1
        epoch.lanes.in_progress -= len(left)
        if run.lane.mixed and (retries or run.split_from is not None):
            self._split_behind(run, left, retries)
        elif run.lane.ordered:
            self._release_lane(run.lane, left, retries)
        elif left and epoch.dispatching:
            lane = self._lane(epoch, run.lane.key)
            lane.waiting.extendleft(reversed(left))
            if epoch.lanes.unpark(lane):  # its first record may be the commit point now, which no lane waits with
                self._ready.append(lane)

    def _release_lane(self, lane: Lane, left: Sequence[AnyRecord], retries: Sequence[Again]) -> None:
        """Put records back at the front of this lane, those to retry first, and let it run or wait for the retry."""
        lane.held = False
        if not lane.epoch.dispatching:
            return
        lane.waiting.extendleft(chain(reversed(left), (record for record, _ in reversed(retries))))
        if retries:
            # The latest: none of them may be attempted before its time.
            self._backoffs.add(lane, max(at for _, at in retries))
        else:
            self._make_ready(lane)

    def _retry_alone(self, epoch: Epoch, record: AnyRecord, at: float) -> None:
        """Let a record without order wait for its retry in a lane of its own."""
        if epoch.dispatching:
            lane = Lane(epoch, name_alone(self._offset_of(record)), waiting=deque([record]))
            epoch.lanes.by_key[lane.key] = lane
            self._backoffs.add(lane, at)

    def _make_ready(self, lane: Lane) -> None:
        if lane.waiting:
            self._ready.append(lane)
        elif lane.epoch.lanes.by_key.get(lane.key) is lane:
            del lane.epoch.lanes.by_key[lane.key]
