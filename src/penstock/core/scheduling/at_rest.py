"""Whether something waits for records in progress."""

from collections.abc import Iterable

from penstock.core.scheduling.in_flight import InFlightCount
from penstock.core.scheduling.lanes import Epoch


def awaits_outcomes(epochs: Iterable[Epoch], in_flight: InFlightCount) -> bool:
    """Whether something may wait for the records that workers have: other records, a revoke, or the fetcher.

    ``epochs`` has at least those with unfinished records.
    """
    for epoch in epochs:
        here, pending = epoch.tracker.unfinished, epoch.pending
        # Inlined, as ``Epoch.started`` and ``Pending.count``: this runs in each turn of the dispatcher.
        started = epoch.lanes.in_progress + pending.sending + len(pending.unacked)
        if here > started or epoch.fetch_state.paused or not epoch.dispatching:
            return True
    return in_flight.are_half_used
