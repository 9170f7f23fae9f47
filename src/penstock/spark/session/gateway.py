"""Starts and ends the JVM of Spark's driver. The JVM writes to the log, never to the terminal."""

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
# A cluster may have to free resources for the app first.
_START_SECONDS = 180.0


def start_context(conf: SparkConf, *, log: Path, environment: Mapping[str, str]) -> SparkContext:
    """Start a context in a new JVM, which does not get the signals that the terminal sends to this process."""
    make_private(log.parent)
    with (
        _environment({**environment, "SPARK_HOME": str(pyspark_jars().parent)}),
        open_private(log, "ab") as output,
    ):
        try:
            gateway = internals.launch_jvm(conf, output)
        except PySparkRuntimeError as error:
            raise SetupError("Spark's JVM did not start.", hint=f"Its last output is in {log}.") from error
        try:
            with _bounded(gateway.proc, conf.get("spark.master", ""), log):
                return _new_context(conf, gateway)
        except JavaException as error:
            text = str(error)  # fetched from the JVM, so before the JVM ends
            _end_gateway(gateway)
            raise JvmError(text) from None
        except BaseException:
            _end_gateway(gateway)
            raise


def join_submitted() -> SparkContext:
    """Start a context in the JVM of spark-submit, with the settings of spark-submit."""
    return _new_context(None, internals.connect_to_submitted_jvm())


def end_context(context: SparkContext) -> None:
    """Stop Spark and its JVM, so that another session can start in this process."""
    gateway, options = internals.running_jvm(), internals.driver_java_options(context)
    # The JVM may have ended already.
    with suppress(ConnectionError, JvmError):
        context.stop()
    if gateway is not None and gateway.proc is not None:  # spark-submit's JVM ends after this process
        _end_gateway(gateway, lingers=writes_archive(shlex.split(options)))


def _end_gateway(gateway: Jvm, *, lingers: bool = False) -> None:
    with suppress(ConnectionError, JvmError):
        gateway.shutdown()
    internals.forget_jvm()
    _end(gateway.proc, lingers=lingers)


def _end(process: "subprocess.Popen[bytes]", *, lingers: bool) -> None:
    """End the JVM, and wait for it unless it ``lingers``: then it still writes a class archive for later sessions."""
    if process.stdin is not None:
        process.stdin.close()  # the JVM ends when its stdin is closed
    if lingers:
        threading.Thread(target=process.wait, name="spark-jvm-end", daemon=True).start()
        return
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _new_context(conf: SparkConf | None, gateway: Jvm) -> SparkContext:
    """Make a context, and restore the handler of Ctrl+C: PySpark's cancels all jobs. Here the caller decides."""
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
    """Kill the JVM if the block takes too long: Spark itself waits forever for a cluster that does not answer."""
    timed_out = threading.Event()

    def end() -> None:
        timed_out.set()
        process.kill()

    watchdog = threading.Timer(seconds, end)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    except Exception as error:
        if timed_out.is_set():
            problem = f"Spark did not start on {master!r} within {seconds:g} s."
            raise ServerError(
                problem, hint=f"Check that the cluster answers and has free resources; details are in {log}."
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
    """Return the folders of the user's modules, for the Python path of workers on this machine."""
    return os.pathsep.join(map(str, own_folders()))
