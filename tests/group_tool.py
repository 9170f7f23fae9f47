"""Kafka's own command line tools, in one JVM for many calls."""

import importlib.util
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError, get_return_value

from jvms import QUICK
from penstock.jvm.coordinates import kafka_tools
from penstock.jvm.jars import resolve


class _Refusal:
    """Raised where the tool would end the JVM."""

    class Java:
        implements = ("org.apache.kafka.common.utils.Exit$Procedure",)

    def execute(self, status: int, message: str | None) -> None:
        raise RuntimeError(f"exit {status}: {message or ''}")


class GroupTool:
    """One of Kafka's tools for groups, by its class."""

    def __init__(self, gateway: JavaGateway, brokers: str, command: str) -> None:
        self._gateway = gateway
        self._brokers = brokers
        self._command = command

    def __call__(self, *arguments: str) -> str:
        """Run the tool; returns what it prints, errors included."""
        jvm = self._gateway.jvm
        printed = jvm.java.io.ByteArrayOutputStream()
        stream = jvm.java.io.PrintStream(printed)
        jvm.System.setOut(stream)
        jvm.System.setErr(stream)
        words = ("--bootstrap-server", self._brokers, *arguments)
        array = self._gateway.new_array(jvm.String, len(words))
        for at, word in enumerate(words):
            array[at] = word
        try:
            # Once PySpark is imported, it looks up every Java exception in Spark's JVM, also those of this JVM.
            with patch("py4j.java_gateway.get_return_value", get_return_value):
                getattr(jvm.org.apache.kafka.tools.consumer.group, self._command).main(array)
        except Py4JJavaError as error:
            return f"{printed.toString()}\nError: {error.java_exception}"
        return str(printed.toString())

    def rows(self, *arguments: str) -> list[dict[str, str]]:
        """The rows of the printed table. No cell contains a space, but for one in front of an id in parentheses."""
        lines = [line for line in self(*arguments).splitlines() if line.strip()]
        at = next(number for number, line in enumerate(lines) if line.startswith("GROUP"))
        names = lines[at].replace("COORDINATOR (ID)", "COORDINATOR").split()
        found = []
        for line in lines[at + 1 :]:
            cells = re.sub(r"\s+\((\d+)\)", r"(\1)", line).split()
            assert len(cells) == len(names), (names, line)
            found.append(dict(zip(names, cells, strict=True)))
        return found


@dataclass(frozen=True)
class GroupTools:
    """``kafka-consumer-groups.sh`` and ``kafka-share-groups.sh``."""

    consumers: GroupTool
    shared: GroupTool


@contextmanager
def group_tools(brokers: str) -> Iterator[GroupTools]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    (py4j,) = Path(spec.origin).parent.glob("jars/py4j-*.jar")
    classpath = os.pathsep.join(map(str, resolve(kafka_tools())))
    port = launch_gateway(jarpath=str(py4j), classpath=classpath, javaopts=[*QUICK], die_on_exit=True)
    gateway: Any = JavaGateway(
        gateway_parameters=GatewayParameters(port=port),
        callback_server_parameters=CallbackServerParameters(port=0),
    )
    try:
        callbacks = gateway.get_callback_server().get_listening_port()
        client = gateway.java_gateway_server
        client.resetCallbackClient(client.getCallbackClient().getAddress(), callbacks)
        gateway.jvm.org.apache.kafka.common.utils.Exit.setExitProcedure(_Refusal())
        yield GroupTools(
            GroupTool(gateway, brokers, "ConsumerGroupCommand"), GroupTool(gateway, brokers, "ShareGroupCommand")
        )
    finally:
        gateway.shutdown()
