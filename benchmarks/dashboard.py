"""What the dashboard costs: python benchmarks/dashboard.py.

It makes 5,000 groups and a group with 2,000 partitions on a broker of its own, serves the dashboard as a process, and
looks at both pages with Chromium. It measures the time until the first picture, the longest frame while the table
scrolls, the processor time of the server with its child process when nothing changes and when 1,000 records a second
are written, and the memory of the page.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import psutil
import typer
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from many_groups import make_groups
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console

from penstock.devkit import Embedded, UpOptions
from penstock.kafka import Cluster

CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
WIDE = "wide"
OVERVIEW = ("#/groups", ".page-groups .table-body .row")
GROUP = (f"#/group?name={WIDE}", ".page-group canvas.heat")
SETTLE_SECONDS = 20.0
# Scrolls the table for two seconds and returns the longest time between two frames, in milliseconds.
SCROLL = """() => new Promise((done) => {
  const body = document.querySelector(".table-body"), began = performance.now();
  let last = began, longest = 0;
  const step = (now) => {
    longest = Math.max(longest, now - last);
    last = now;
    body.scrollTop += 240;
    now - began < 2000 ? requestAnimationFrame(step) : done(longest);
  };
  requestAnimationFrame(step);
})"""


def main(
    groups: Annotated[int, typer.Option(help="How many groups there are.")] = 5_000,
    partitions: Annotated[int, typer.Option(help="How many partitions the one group has.")] = 2_000,
    watched: Annotated[float, typer.Option("--seconds", help="How long each page is watched.")] = 30.0,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    with tempfile.TemporaryDirectory() as folder, kafka_of(Path(folder)) as brokers:
        cluster = Cluster(brokers)
        make_groups(cluster, groups)
        make_wide_group(cluster, partitions)
        with served(brokers) as (server, url), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
            found = {
                f"overview of {groups:,} groups": watch(browser, url, server, OVERVIEW, watched),
                f"group with {partitions:,} partitions": watch(browser, url, server, GROUP, watched),
            }
            with writing(brokers, partitions):
                name = "the same while 1,000 records a second are written"
                found[name] = watch(browser, url, server, GROUP, watched)
            browser.close()
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, figures in found.items():
        Console().print(f"{name}: {', '.join(f'{what} {value:,.1f}' for what, value in figures.items())}")


@contextmanager
def kafka_of(folder: Path) -> Iterator[str]:
    kafka = Embedded(folder)
    try:
        kafka.up(UpOptions(port=0))
        yield str(kafka.bootstrap())
    finally:
        kafka.down()


def make_wide_group(cluster: Cluster, partitions: int) -> None:
    cluster.create_topics([WIDE], partitions=partitions)
    offsets = [TopicPartition(WIDE, number, 0) for number in range(partitions)]
    asked = cluster.admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(WIDE, offsets)], request_timeout=180
    )
    for future in asked.values():
        future.result(timeout=60)


@contextmanager
def served(brokers: str) -> Iterator[tuple[psutil.Process, str]]:
    command = [sys.executable, "-m", "penstock", "ui", "--json", "--brokers", brokers]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        yield psutil.Process(process.pid), json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.wait(30)


def watch(
    browser: Browser, url: str, server: psutil.Process, place: tuple[str, str], watched: float
) -> dict[str, float]:
    """Open the page in a new window, twice: the second time the server knows the group, as after a reload."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(url)
    first = picture(page, place)
    page.goto("about:blank")
    again = picture(page, place, url.partition("/sign-in")[0])
    page.wait_for_timeout(SETTLE_SECONDS * 1000)
    longest = page.evaluate(SCROLL) if page.locator(".table-body").count() else 0.0
    page.wait_for_timeout(2000)
    before, heap = cpu(server), memory(page)
    page.wait_for_timeout(watched * 1000)
    used = (cpu(server) - before) / watched
    found = {
        "first picture in s": first,
        "after a reload in s": again,
        "longest frame in ms": longest,
        "server in % of a core": 100 * used,
        "server in MiB": resident(server) / 2**20,
        "page in MiB": memory(page) / 2**20,
        "page grew by MiB": (memory(page) - heap) / 2**20,
    }
    context.close()
    return {name: round(value, 2) for name, value in found.items()}


def picture(page: Page, place: tuple[str, str], origin: str = "") -> float:
    """Return the seconds until the page shows rows."""
    address, shown = place
    began = time.monotonic()
    if origin:
        page.goto(f"{origin}/{address}")
    else:
        page.evaluate("address => { location.hash = address }", address)
    page.locator(shown).first.wait_for(timeout=120_000)
    return time.monotonic() - began


def memory(page: Page) -> float:
    """Return the bytes of the page's objects after a garbage collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used: float = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used


def cpu(process: psutil.Process) -> float:
    """Return the processor time of the web server and of its child process, which reads."""
    times = [each.cpu_times() for each in (process, *process.children())]
    return float(sum(each.user + each.system for each in times))


def resident(process: psutil.Process) -> float:
    return float(sum(each.memory_info().rss for each in (process, *process.children())))


@contextmanager
def writing(brokers: str, partitions: int) -> Iterator[None]:
    """Write 1,000 records a second, over all partitions."""
    ended = threading.Event()

    def write() -> None:
        producer, number = Producer({"bootstrap.servers": brokers}), 0
        while not ended.wait(0.1):
            for _ in range(100):
                number += 1
                producer.produce(WIDE, b"x", partition=number % partitions)
            producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    typer.run(main)
