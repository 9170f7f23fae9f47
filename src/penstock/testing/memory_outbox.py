"""Produces outputs and dead letters to the broker in memory."""

from collections.abc import Iterable, Sequence

from penstock.core.scheduling.effects import Send
from penstock.engine.dispatch.thread_messages import Delivered, Inbox
from penstock.engine.produce.outbox import refusal
from penstock.kafka.client.refused_output import unknown_partition
from penstock.testing.world import World


class MemoryOutbox:
    """Writes at once; the dispatcher finds the answer in its inbox at its next turn."""

    is_full = False

    def __init__(self, inbox: Inbox, world: World) -> None:
        self._inbox = inbox
        self._broker = world.broker
        self._faults = world.faults
        self._outputs = world.outputs

    def send(self, sends: Iterable[Send]) -> Sequence[Send]:
        for send in sends:
            out = send.outgoing
            error = self._faults.produce.get(out.topic)
            if error is not None:
                self._inbox.put(refusal(send, error, brokers="the bench"))
                continue
            if send.failure is None:
                self._outputs.add(out.topic)
            partitions = len(self._broker.topic(out.topic).logs)
            if out.partition >= partitions:
                self._inbox.put(refusal(send, unknown_partition(out, partitions), brokers="the bench"))
                continue
            self._broker.append(
                out.topic,
                out.key,
                out.value,
                out.headers,
                partition=None if out.partition < 0 else out.partition,
                timestamp_ms=out.timestamp_ms or None,
            )
            self._inbox.put(Delivered([send]))
        return ()

    def flush(self) -> None:
        """Nothing to do: records never wait here."""
