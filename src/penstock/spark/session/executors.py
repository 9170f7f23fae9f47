"""Checks before the first record that there are executors, and that they can import what handlers need."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from pyspark import SparkContext

from penstock.core.text.durations import seconds
from penstock.errors import ServerError, SetupError
from penstock.paths import spark_log_file
from penstock.spark.driver.spark_errors import executors_error
from penstock.spark.internals import JvmError
from penstock.spark.session.shipping import NEEDED_MODULES, Shipment

# Penstock's setting, with Spark's prefix, for clusters that start machines first. docs/spark-clusters.md names it.
_WAIT = "spark.penstock.executors.wait"
_DEFAULT_WAIT = "3m"
_TAG = "penstock-checks-executors"
_CANCEL_SECONDS = 0.5


def check_executors(context: SparkContext, shipment: Shipment) -> None:
    """Raise one clear error if no executor starts, or if one lacks a module that the app needs."""
    wait = seconds(context.getConf().get(_WAIT, _DEFAULT_WAIT), name=_WAIT)
    check = _check([*NEEDED_MODULES, "penstock.spark.tasks.run_slices", *shipment.modules])
    tasks = max(1, context.defaultParallelism)
    timed_out = threading.Event()
    try:
        with _bounded(context, wait, timed_out):
            answers = context.parallelize(range(tasks), tasks).mapPartitions(check).collect()
    except (JvmError, ConnectionError) as error:
        if timed_out.is_set():
            raise ServerError(
                f"Spark on {context.master!r} started no executor within {wait:g} s.",
                hint="Check that the cluster has free spark.executor.memory and spark.executor.cores, and that "
                "executors reach this machine (--spark-conf spark.driver.host=...); to wait longer, "
                f"--spark-conf {_WAIT}=10m. Details are in {spark_log_file()}.",
            ) from error
        raise executors_error(error, str(context.master)) from error
    for host, python, missing in map(json.loads, answers):
        if missing:
            raise _lacks(host, python, missing)


def _check(modules: Sequence[str]) -> Callable[[Iterable[int]], Iterator[str]]:
    """Return the function that runs on executors. It imports inside, because executors may lack Penstock."""

    def check(_: Iterable[int]) -> Iterator[str]:
        import importlib  # noqa: PLC0415
        import json  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import sys  # noqa: PLC0415

        missing = {}
        for name in modules:
            try:
                importlib.import_module(name)
            except BaseException as error:  # noqa: BLE001 - importing an app's module may raise anything
                missing[name] = f"{type(error).__name__}: {error}"
        yield json.dumps([platform.node(), sys.executable, missing])

    return check


def _lacks(host: str, python: str, missing: dict[str, str]) -> SetupError:
    libraries = [name for name in NEEDED_MODULES if name in missing]
    if libraries:
        return SetupError(
            f"Executors lack {', '.join(libraries)}: {python} on {host} does not find "
            f"{'it' if len(libraries) == 1 else 'them'}.",
            hint="Install what `penstock ship MODULE:APP` lists there, name a Python that has it "
            "(--spark-conf spark.pyspark.python=PATH), or send an environment (docs/spark-clusters.md).",
        )
    name, reason = next(iter(missing.items()))
    return SetupError(
        f"Executors cannot import {name}: {reason} ({python} on {host}).",
        hint="Give them what it needs: libraries as an environment (`penstock ship MODULE:APP` lists them), variables "
        "with --spark-conf spark.executorEnv.NAME=VALUE.",
    )


@contextmanager
def _bounded(context: SparkContext, wait: float, timed_out: threading.Event) -> Iterator[None]:
    """Cancel the block's jobs after ``wait`` seconds, and set the event."""
    ended = threading.Event()

    def watch() -> None:
        if ended.wait(wait):
            return
        timed_out.set()
        # Again and again: on a busy machine the block may start its job after the first cancellation.
        while not ended.is_set():
            context.cancelJobsWithTag(_TAG)
            ended.wait(_CANCEL_SECONDS)

    context.addJobTag(_TAG)
    threading.Thread(target=watch, name="executor-check", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        context.removeJobTag(_TAG)
