"""A look at the executors before records flow: whether they are there, and can import what handlers need."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from pyspark import SparkContext

from penstock.core.text.durations import seconds
from penstock.errors import ServerError, SetupError
from penstock.spark.internals import JvmError
from penstock.spark.paths import log_file
from penstock.spark.session.shipping import NEEDED_MODULES, Shipment
from penstock.spark.spark_errors import executors_error

# A setting of ours among Spark's, for clusters that start machines first. The name is in docs/spark-clusters.md.
_WAIT = "spark.penstock.executors.wait"
_DEFAULT_WAIT = "3m"
_TAG = "penstock-looks-at-executors"


def check_executors(context: SparkContext, shipment: Shipment) -> None:
    """Raise one clear error where no executor comes, or one lacks what the app needs."""
    wait = seconds(context.getConf().get(_WAIT, _DEFAULT_WAIT), name=_WAIT)
    look = _look([*NEEDED_MODULES, "penstock.spark.task", *shipment.modules])
    tasks = max(1, context.defaultParallelism)
    has_run_out = threading.Event()
    try:
        with _bounded(context, wait, has_run_out):
            told = context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    except (JvmError, ConnectionError) as error:
        if has_run_out.is_set():
            raise ServerError(
                f"Spark on {context.master!r} gave no executor within {wait:g} s.",
                hint="See that the cluster has room for spark.executor.memory and spark.executor.cores, and that "
                "executors reach this machine (--spark-conf spark.driver.host=...); to wait longer, "
                f"--spark-conf {_WAIT}=10m. Details are in {log_file()}.",
            ) from error
        raise executors_error(error, str(context.master)) from error
    for host, python, missing in map(json.loads, told):
        if missing:
            raise _lacks(host, python, missing)


def _look(modules: Sequence[str]) -> Callable[[Iterable[int]], Iterator[str]]:
    """What runs on executors. It travels by value and imports inside, as it must run where Penstock cannot."""

    def look(_: Iterable[int]) -> Iterator[str]:
        import importlib  # noqa: PLC0415
        import json  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import sys  # noqa: PLC0415

        missing = {}
        for name in modules:
            try:
                importlib.import_module(name)
            except BaseException as error:  # noqa: BLE001 - an app's module may raise whatever it likes
                missing[name] = f"{type(error).__name__}: {error}"
        yield json.dumps([platform.node(), sys.executable, missing])

    return look


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
def _bounded(context: SparkContext, wait: float, has_run_out: threading.Event) -> Iterator[None]:
    """Cancel what the block has running when time is up, and say so in the event."""

    def cancel() -> None:
        has_run_out.set()
        context.cancelJobsWithTag(_TAG)

    watchdog = threading.Timer(wait, cancel)
    watchdog.daemon = True
    context.addJobTag(_TAG)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        context.removeJobTag(_TAG)
