"""Kafka's own assignors from the client of the embedded Kafka, as one Java program."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from penstock.jvm.coordinates import KAFKA
from penstock.jvm.jars import resolve
from penstock.jvm.java_runtime import find_java

_SOURCES = Path(__file__).parent / "java"
_JARS = ("kafka-clients-", "slf4j-api-", "jackson-annotations-", "jackson-core-", "jackson-databind-")


def class_path() -> str:
    return ":".join(str(jar) for jar in resolve(KAFKA) if jar.name.startswith(_JARS))


@contextmanager
def java_program(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a program of ``tests/assignors/java`` from its source; it reads and writes lines."""
    command = [str(find_java()), "-Xmx2g", "-cp", class_path(), str(_SOURCES / f"{name}.java"), *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[str], questions: list[str]) -> list[str]:
    """Answers in the order of the questions."""
    assert process.stdout
    # Another thread writes. Otherwise both pipes could fill up, and each process would wait for the other to read.
    writer = Thread(target=_write, args=(process, questions))
    writer.start()
    answers = [process.stdout.readline() for _ in questions]
    writer.join()
    if not all(answers):
        raise RuntimeError(f"The Java program ended with {process.wait()}.")
    return answers


def _write(process: subprocess.Popen[str], questions: list[str]) -> None:
    assert process.stdin
    process.stdin.write("".join(f"{question}\n" for question in questions))
    process.stdin.flush()
