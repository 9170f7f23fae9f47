"""What a Python worker keeps from slice to slice: clients, resources, and what it has found out about the handler.

Spark runs one task at a time in a Python worker, and many tasks one after the other. Clients keep their connections and
threads, so they are made once. They do not survive a fork; a forked process makes its own.
"""

import os
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, Producer

from penstock.app import Handler
from penstock.app.dispatching.running_concurrency import auto_concurrency
from penstock.core.failures.pausing_circuit import circuit_of
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.auto_concurrency import AutoConcurrency
from penstock.core.settings import Settings
from penstock.kafka import Cluster, buffer_settings, make_alone_producer, make_consumer, make_producer, reader_settings
from penstock.kafka.client.output_topics import OutputTopicFacts
from penstock.kafka.client.transactions import Transaction, group_metadata, transactional_id
from penstock.spark.tasks.outputs import ONLY_ERRORS
from penstock.spark.tasks.task_resources import TaskResources

# Each has threads and connections, so a worker keeps only a few.
_MOST_STATES = 8
_MOST_TRANSACTIONS = 4
_BATCH_SIZE = 1_000_000  # the client's default of batch.size
_CLOSE_SECONDS = 5.0
# While one request is under way, the next batch fills. A few large batches cost client and broker less than many small
# ones.
_LARGE_BATCHES = {"max.in.flight.requests.per.connection": 1}


@dataclass(frozen=True)
class TaskPlan:
    """What a task needs to run a handler. Spark sends it to workers, with secrets, which it never prints."""

    handler: Handler  # without settings
    brokers: str
    settings: Settings
    per_record: bool = False


class WorkerState:
    """One for each handler in each Python worker."""

    def __init__(self, plan: TaskPlan) -> None:
        self.plan = plan
        self.name = uuid4().hex
        self.circuit = circuit_of(plan.handler.breaker)
        self.auto = auto_concurrency(plan.handler)
        self.resources = TaskResources(plan.handler, self.name)
        self._consumers: list[Consumer] = []
        self._producer: Producer | None = None
        self._alone: Producer | None = None
        self._transactions: OrderedDict[TopicPartition, Transaction] = OrderedDict()

    def auto_for(self, handler: Handler) -> AutoConcurrency | None:
        """The rule that finds the concurrency, if this handler has not named one; the next task continues with it."""
        if handler.concurrency == "auto":
            self.auto = self.auto or auto_concurrency(handler)
            return self.auto
        return None

    # Reading and writing.

    def take_consumer(self) -> Consumer:
        """Return a consumer for one task; ``give_back`` takes it for the next task."""
        if self._consumers:
            return self._consumers.pop()
        handler = self.plan.handler
        return make_consumer(
            self.plan.brokers,
            handler.group,
            settings=self.plan.settings,
            member={**reader_settings(handler), **buffer_settings(handler)},
            reset="error",
        )

    def give_back(self, consumer: Consumer) -> None:
        self._consumers.append(consumer)

    @staticmethod
    def discard(consumer: Consumer) -> None:
        """Close a consumer that may be broken. Its threads would live until Python looks for cycles of objects."""
        with suppress(KafkaException, RuntimeError):
            consumer.close()

    def producer(self) -> Producer:
        if self._producer is None:
            self._producer = make_producer(
                self.plan.brokers, settings=self.plan.settings, proven=False, more=ONLY_ERRORS
            )
        return self._producer

    def alone_producer(self) -> Producer:
        if self._alone is None:
            self._alone = make_alone_producer(self.plan.brokers, self.plan.settings)
        return self._alone

    def drop_producer(self) -> None:
        """The next task gets a new one, because this one has failed."""
        self._producer = None

    # Transactions.

    @cached_property
    def cluster(self) -> Cluster:
        return Cluster(self.plan.brokers, self.plan.settings)

    @cached_property
    def facts(self) -> OutputTopicFacts:
        """What is known of the topics that the handler writes to."""
        return OutputTopicFacts(
            self.plan.handler.written_topics,
            read_limits=self.cluster.largest_batches,
            count_partitions=self.cluster.require_topics,
        )

    @contextmanager
    def open_transaction(self, tp: TopicPartition, *, is_newest: bool) -> Iterator[Transaction]:
        """Return the transactions of this partition, after all earlier producers of it are fenced.

        ``is_newest``: the last slice of this partition ran in this worker. Then its producer is still the newest one,
        unless another task has fenced it meanwhile, which its commit finds out. At the end of the block, it is closed
        unless ``keep_transaction`` was called.
        """
        transaction = self._newest_transaction(tp, is_newest=is_newest)
        try:
            with transaction:
                yield transaction
        finally:
            if self._transactions.get(tp) is not transaction:
                transaction.close()

    def _newest_transaction(self, tp: TopicPartition, *, is_newest: bool) -> Transaction:
        found = self._transactions.pop(tp, None)
        if found is not None and not is_newest:
            found.close()
            found = None
        if found is None:
            # The broker refuses a batch as a whole, so no batch may be larger than the smallest limit of a topic.
            smallest = min([_BATCH_SIZE, *self.facts.limits().values()])
            found = self._open(tp, {"batch.size": smallest, **_LARGE_BATCHES})
            found.fence()
        return found

    def keep_transaction(self, tp: TopicPartition, transaction: Transaction) -> None:
        self._transactions[tp] = transaction
        while len(self._transactions) > _MOST_TRANSACTIONS:
            self._transactions.popitem(last=False)[1].close()

    def trial(self, tp: TopicPartition) -> Transaction:
        """Return a transaction to find out what the broker refuses; it is never committed."""
        trial = self._open(tp, {}, "trial")
        trial.fence()
        return trial

    def _open(self, tp: TopicPartition, more: Mapping[str, Any], *name: str) -> Transaction:
        group = self.plan.handler.group
        return Transaction(
            self.plan.brokers,
            transactional_id(group, *tp, *name),
            group=self._not_a_member,
            settings={**self.plan.settings, **more},
        )

    @cached_property
    def _not_a_member(self) -> Any:
        return group_metadata(self.plan.brokers, self.plan.handler.group, settings=self.plan.settings)

    def close(self) -> None:
        for consumer in self._consumers:
            self.discard(consumer)
        for transaction in self._transactions.values():
            transaction.close()
        if self._producer is not None:
            self._producer.flush(_CLOSE_SECONDS)
        self.resources.close()


_states: OrderedDict[bytes, WorkerState] = OrderedDict()


def worker_state(packed: bytes) -> WorkerState:
    """Return the state for this packed plan. Unpacks a plan once, so what a handler's module holds stays alive too."""
    state = _states.get(packed)
    if state is None:
        state = _states[packed] = WorkerState(pickle.loads(packed))  # noqa: S301 - our own driver packed it
        while len(_states) > _MOST_STATES:
            _states.popitem(last=False)[1].close()
    _states.move_to_end(packed)
    return state


_of_parent: list[WorkerState] = []


def _leave_to_parent() -> None:
    """Make own clients after a fork, and keep those of the parent: to destroy one here would crash this process.

    A client has threads, which exist only in the parent. A fork is not always visible: ``subprocess`` forks too if it
    runs a function in the child, as PySpark does to start the JVM.
    """
    _of_parent.extend(_states.values())
    _states.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
