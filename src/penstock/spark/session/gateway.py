"""The JVM that Spark's driver runs in: started without a word on the terminal, and ended without a trace."""

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError

from penstock.errors import ServerError, SetupError
from penstock.jvm.class_archive import writes_archive
from penstock.jvm.installed_spark import pyspark_jars
from penstock.jvm.private_files import make_private, open_private
from penstock.spark import internals
from penstock.spark.internals import JavaException, Jvm, JvmError
from penstock.spark.session.user_modules import own_folders

_END_SECONDS = 10.0
# A cluster's manager may have to find room for the app first.
_START_SECONDS = 180.0


def start_context(conf: SparkConf, *, log: Path, environment: Mapping[str, str]) -> SparkContext:
    """A context in a JVM of its own, which outlives every signal that the terminal sends to this process."""
    make_private(log.parent)
    with (
        _environment({**environment, "SPARK_HOME": str(pyspark_jars().parent)}),
        open_private(log, "ab") as output,
    ):
        try:
            gateway = internals.launch_jvm(conf, output)
        except PySparkRuntimeError as error:
            raise SetupError("Spark's JVM did not start.", hint=f"Its last words are in {log}.") from error
        try:
            with _bounded(gateway.proc, conf.get("spark.master", ""), log):
                return _keeping_signals(conf, gateway)
        except JavaException as error:
            words = str(error)  # which are asked of the JVM, while there is one
            _end_gateway(gateway)
            raise JvmError(words) from None
        except BaseException:
            _end_gateway(gateway)
            raise


def join_submitted() -> SparkContext:
    """A context in the JVM of spark-submit, with the settings that it was given."""
    return _keeping_signals(None, internals.connect_to_submitted_jvm())


def end_context(context: SparkContext) -> None:
    """Stop Spark and its JVM, and forget them, so that another session can start in this process."""
    gateway, options = internals.running_jvm(), internals.driver_java_options(context)
    # A JVM that is gone already cannot be told to stop, and need not be.
    with suppress(ConnectionError, JvmError):
        context.stop()
    if gateway is not None and gateway.proc is not None:  # spark-submit's JVM ends when this process has
        _end_gateway(gateway, lingers=writes_archive(shlex.split(options)))


def _end_gateway(gateway: Jvm, *, lingers: bool = False) -> None:
    with suppress(ConnectionError, JvmError):
        gateway.shutdown()
    internals.forget_jvm()
    _end(gateway.proc, lingers=lingers)


def _end(process: "subprocess.Popen[bytes]", *, lingers: bool) -> None:
    """Wait until the JVM has ended, unless it ``lingers``: the next session needs its archive, this one does not."""
    if process.stdin is not None:
        process.stdin.close()  # which the JVM takes as the sign to go
    if lingers:
        threading.Thread(target=process.wait, name="spark-jvm-end", daemon=True).start()
        return
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _keeping_signals(conf: SparkConf | None, gateway: Jvm) -> SparkContext:
    """PySpark answers a Ctrl+C by cancelling all jobs; here that is the caller's to decide."""
    if threading.current_thread() is not threading.main_thread():
        return SparkContext(conf=conf, gateway=gateway)
    before = signal.getsignal(signal.SIGINT)
    try:
        return SparkContext(conf=conf, gateway=gateway)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _bounded(
    process: "subprocess.Popen[bytes]", master: str, log: Path, *, seconds: float = _START_SECONDS
) -> Iterator[None]:
    """Spark's own patience with a manager that does not answer has no end."""
    has_run_out = threading.Event()

    def end() -> None:
        has_run_out.set()
        process.kill()

    watchdog = threading.Timer(seconds, end)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    except Exception as error:
        if has_run_out.is_set():
            problem = f"Spark did not start on {master!r} within {seconds:g} s."
            raise ServerError(
                problem, hint=f"See that the cluster answers and has room; details are in {log}."
            ) from error
        raise
    finally:
        watchdog.cancel()


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def python_path() -> str:
    """What workers on this machine need on their path besides what the interpreter brings: the user's modules."""
    return os.pathsep.join(map(str, own_folders()))
