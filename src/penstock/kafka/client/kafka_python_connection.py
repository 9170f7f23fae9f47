"""Connections of kafka-python: requests that confluent-kafka does not have, with confluent-kafka's errors."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from penstock.kafka.client.kafka_python import (
    CoordinatorType,
    KafkaConnectionManager,
    NetworkSelector,
    kafka_python_errors,
)
from penstock.kafka.error_codes import Code

_CLOSE_SECONDS = 5.0


class KafkaPythonNetwork:
    """The network thread, and the connections that it serves."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = dict(config)
        self._net = NetworkSelector(**config)
        self._net.start()
        self._connections: list[KafkaPythonConnection] = []

    def connect(self) -> "KafkaPythonConnection":
        """Return a connection to the cluster. The first request connects it."""
        connection = KafkaPythonConnection(self._net, self._config)
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        """Close all connections. Requests in progress fail with an error."""
        for connection in self._connections:
            with suppress(Exception):  # the network itself is closed below in any case
                self._net.run(connection.close)
        self._net.stop(timeout_ms=_CLOSE_SECONDS * 1000)
        self._net.close()


class KafkaPythonConnection:
    """Requests to the brokers of one cluster, with one socket for each broker.

    Other threads call ``run`` and ``run_later`` with a coroutine, which sends requests on the network thread.
    """

    def __init__(self, net: Any, config: Mapping[str, Any]) -> None:
        self._net = net
        self._manager = KafkaConnectionManager(net, **config)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a coroutine on the network thread and return its result; raise KafkaException if a request fails."""
        try:
            return self._net.run(function, *arguments)
        except (kafka_python_errors.KafkaError, RuntimeError) as error:
            raise to_confluent_error(error) from error

    def run_later(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        on_answer: Callable[[Any], None],
        on_error: Callable[[KafkaException], None],
    ) -> None:
        """Run a coroutine on the network thread, which calls one of the two functions with the result."""
        future = self._manager.call_soon(function, *arguments)
        future.add_callback(on_answer)
        future.add_errback(lambda error: on_error(to_confluent_error(error)))

    # Runs on the network thread.

    async def bootstrap(self, seconds: float) -> None:
        if not self._manager.bootstrapped:
            await self._manager.wait_for(self._manager.bootstrap_async(seconds * 1000), seconds * 1000)

    async def ask(self, request: Any, seconds: float, *, node: Any = None) -> Any:
        """Send a request to this broker, or to any broker, and wait for the answer."""
        if node is None:
            await self.bootstrap(seconds)
        return await self.answer(self.send(request, seconds, node=node), seconds)

    async def ask_all_brokers(self, request: Callable[[], Any], seconds: float) -> list[Any]:
        """Send a request to every broker at the same time, and wait for all answers."""
        await self.bootstrap(seconds)
        nodes = [broker.node_id for broker in self._manager.cluster.brokers()]
        sent = [self.send(request(), seconds, node=node) for node in nodes]
        return [await self.answer(each, seconds) for each in sent]

    def send(self, request: Any, seconds: float, *, node: Any) -> Any:
        """Send a request without waiting; ``answer`` waits for what this returns."""
        return self._manager.send(request, node_id=node, request_timeout_ms=seconds * 1000)

    async def answer(self, sent: Any, seconds: float) -> Any:
        return await self._manager.wait_for(sent, seconds * 1000)

    def coordinator_node(self, found: Any, group: str) -> Any:
        """Return the node for requests to this coordinator, which get a socket of their own."""
        return self._manager.cluster.add_coordinator(found, CoordinatorType.GROUP, group)

    async def close(self) -> None:
        self._manager.close()


def to_confluent_error(error: BaseException) -> KafkaException:
    """Convert an error of kafka-python to the error that confluent-kafka would raise."""
    if isinstance(error, KafkaException):
        return error
    code = getattr(error, "errno", None)
    if isinstance(error, kafka_python_errors.KafkaTimeoutError):
        code = Code.LOCAL_TIMED_OUT
    elif not isinstance(code, int) or code <= 0:
        code = Code.LOCAL_TRANSPORT
    return KafkaException(KafkaError(code, str(error) or type(error).__name__))
