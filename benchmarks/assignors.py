"""Assignors against Kafka's own, in one run: python benchmarks/assignors.py.

Each assignor gets a group of so many members, topics and partitions of each topic: fresh, and again when each member
has what it got and one of them has left. The best of several rounds counts, so Java is warm. Making the group is not
measured on either side.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from penstock.assign import ASSIGNORS, Assignor, Group, Member
from penstock.assign.sticky.user_data import write_sticky
from penstock.jvm.coordinates import KAFKA
from penstock.jvm.jars import resolve
from penstock.jvm.java_runtime import find_java

HERE = Path(__file__).parent
KAFKAS = ("range", "roundrobin", "sticky", "cooperative-sticky")
GRID = (
    (100, 100, 100, "alike"),
    (500, 500, 200, "alike"),
    (2_000, 500, 200, "alike"),
    (2_000, 500, 2_000, "alike"),
    (100, 100, 100, "mixed"),
    (500, 500, 200, "mixed"),
)
SECONDS = 5.0
LEAST_ROUNDS = 3
PATIENCE = 90.0  # seconds, for a peer's answer
# How many times as long as warm Java each may take: fresh, and after one member left.
LIMITS = {"cooperative-sticky": (2.0, 1.0)}
OTHERS = (3.0, 3.0)

Seconds = tuple[float, float]
"""Of a fresh assignment, and after one member left."""


def java_command() -> list[str]:
    jars = ":".join(str(jar) for jar in resolve(KAFKA) if jar.name.startswith(("kafka-clients-", "slf4j-api-")))
    return [str(find_java()), "-Xmx4g", "-cp", jars, str(HERE / "java" / "AssignorBench.java")]


def peer(command: list[str], name: str, case: tuple[int, int, int, str]) -> Seconds | str:
    """What another program measured, or why it did not."""
    arguments = [name, *map(str, case), str(SECONDS)]
    try:
        answer = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"> {PATIENCE:.0f} s"
    except subprocess.CalledProcessError as error:
        return (error.stderr.strip().splitlines() or ["failed"])[-1][:40]
    fresh, leaving = answer.stdout.split()
    return float(fresh), float(leaving)


def joined(members: int, topics: int, partitions: int, kind: str) -> Group:
    names = [f"topic-{topic:04}" for topic in range(topics)]
    halves = (tuple(names[0::2]), tuple(names[1::2])) if kind == "mixed" else (tuple(names), tuple(names))
    return Group.of(
        [Member(id=f"consumer-{number:05}", topics=halves[number % 2]) for number in range(members)],
        dict.fromkeys(names, partitions),
    )


def penstocks(assignor: Assignor, group: Group) -> tuple[float, float]:
    fresh: list[float] = []
    leaving: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(leaving) < LEAST_ROUNDS or time.perf_counter() < end:
        start = time.perf_counter()
        given = assignor.assign(group).partitions
        fresh.append(time.perf_counter() - start)
        stayed = Group(tuple(grown_old(assignor, given, group))[:-1], group.topics)
        start = time.perf_counter()
        assignor.assign(stayed)
        leaving.append(time.perf_counter() - start)
    return min(fresh), min(leaving)


def grown_old(assignor: Assignor, given: dict[str, list[tuple[str, int]]], group: Group) -> Iterator[Member]:
    for member in group.members:
        if assignor.name == "sticky":
            yield replace(member, generation=1, user_data=write_sticky(given[member.id], 1))
        else:
            yield replace(member, generation=1, owned=tuple(given[member.id]))


def main(
    *,
    largest: Annotated[int, typer.Option(help="Leave out groups with more partitions.")] = 1_000_000,
    smallest: Annotated[int, typer.Option(help="Leave out groups with fewer partitions.")] = 0,
    names: Annotated[str, typer.Option(help="Which assignors, with commas.")] = ",".join(ASSIGNORS),
    kafka_python: Annotated[
        str, typer.Option(help="An interpreter that has kafka-python, to compare with; this one if it has it.")
    ] = sys.executable if find_spec("kafka") else "",
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    peers = {"java": java_command()}
    if kafka_python:
        peers["kafka-python"] = [kafka_python, str(HERE / "kafka_python_assignors.py")]
    err = Console(stderr=True)
    results = []
    for case in GRID:
        members, topics, partitions, kind = case
        if not smallest <= topics * partitions <= largest:
            continue
        group = joined(*case)
        for name in names.split(","):
            measured: dict[str, Seconds | str] = {"penstock": penstocks(ASSIGNORS[name], group)}
            if name in KAFKAS:
                measured |= {who: peer(command, name, case) for who, command in peers.items()}
            row = {"members": members, "partitions": topics * partitions, "kind": kind, "assignor": name}
            results.append(row | measured)
            err.print(results[-1], soft_wrap=True)
    if as_json:
        print(json.dumps(results, indent=2))
        return
    table = Table(
        "members",
        "partitions",
        "kind",
        "assignor",
        "penstock",
        *peers,
        "against java",
        title="seconds, fresh / one left",
    )
    for row in results:
        cells = (_shown(row.get(who)) for who in ("penstock", *peers))
        times = _ratio(row)
        ratio = "" if times is None else f"{times[0]:.2f} / {times[1]:.2f}"
        table.add_row(f"{row['members']:,}", f"{row['partitions']:,}", row["kind"], row["assignor"], *cells, ratio)
    Console().print(table)
    for row in results:
        times = _ratio(row)
        limits = LIMITS.get(row["assignor"], OTHERS)
        if times is not None and (times[0] > limits[0] or times[1] > limits[1]):
            where = f"{row['assignor']}, {row['members']:,} members, {row['partitions']:,} partitions, {row['kind']}"
            print(f"Slower than it should be: {where}: {times[0]:.2f} / {times[1]:.2f} times as long as Java.")


def _ratio(row: dict) -> Seconds | None:
    """Ours against Java's."""
    own, java = row["penstock"], row.get("java")
    return (own[0] / java[0], own[1] / java[1]) if isinstance(java, tuple) else None


def _shown(seconds: Seconds | str | None) -> str:
    return f"{seconds[0]:.3f} / {seconds[1]:.3f}" if isinstance(seconds, tuple) else seconds or ""


if __name__ == "__main__":
    typer.run(main)
