"""All uses of private parts of Spark and PySpark, and the check that the Spark that runs is a tested one.

Nothing here is part of Spark's public API, so any release of Spark may change it. The other modules of the Spark engine
call these functions and use no private part themselves; ``tests/unit/spark/test_internals.py`` checks that. To support
another version of Spark, read this file. Two other modules depend on details of Spark that are not code:
``checkpoint.py`` on the files of a checkpoint, ``spark_errors.py`` on the texts of errors.
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple, TypeAlias

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.internal import InternalFunction
from pyspark.sql.streaming.query import StreamingQuery

from penstock.jvm.installed_spark import check_spark, spark_version

JvmError = Py4JError
"""The driver's JVM raised an exception, or does not answer. PySpark wraps only some of these in errors of its own."""

Jvm: TypeAlias = JavaGateway
"""The connection to the driver's JVM; ``proc`` is the process, None where spark-submit has started it."""

JavaException = Py4JJavaError
"""The kind of JvmError that is an exception in Java. Its text is fetched from the JVM when it is first read."""

Execution: TypeAlias = Any
"""Spark's ``QueryExecution``, a Java object: a plan, its run and the counts of that run."""

# PySpark logs each error of Spark to stderr as JSON, with Java's stack traces, before it raises the error.
_ERROR_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

# The nodes of an executed plan whose tasks read all of their input. Limits do not, and neither do some joins.
_SHUFFLES = frozenset({"BroadcastExchange", "BroadcastQueryStage", "ShuffleExchange", "ShuffleQueryStage"})
_READ_ALL = frozenset(
    {
        "AdaptiveSparkPlan",
        "ArrowEvalPython",
        "BatchEvalPython",
        "BroadcastHashJoin",
        "CollectMetrics",
        "DeserializeToObject",
        "EventTimeWatermark",
        "Expand",
        "Filter",
        "Generate",
        "HashAggregate",
        "InputAdapter",
        "MapElements",
        "MapInArrow",
        "MapInPandas",
        "MapPartitions",
        "ObjectHashAggregate",
        "Project",
        "ReusedExchange",
        "SerializeFromObject",
        "Sort",
        "SortAggregate",
        "StateStoreRestore",
        "StateStoreSave",
        "StreamingDeduplicate",
        "StreamingDeduplicateWithinWatermark",
        "TableCacheQueryStage",
        "Union",
        "UpdateEventTimeColumn",
        "WholeStageCodegen",
        "Window",
    }
)

# Py4J logs what the engine turns into errors, and Python prints the messages of a logger without a handler.
logging.getLogger("py4j").addHandler(logging.NullHandler())


def check_version(session: SparkSession, *, pipelines: bool) -> None:
    """Raise an error unless both PySpark and the session are of a version that Penstock is tested with.

    The two can differ: spark-submit brings a Spark of its own, and so does a session that the user made.
    """
    spark_version(pipelines=pipelines)
    check_spark(session.version, "Spark", "runs this session", pipelines=pipelines)


def is_connect(session: SparkSession) -> bool:
    """Whether this is a Spark Connect session, which has no JVM here; both classes have the same public API."""
    return type(session).__module__.startswith("pyspark.sql.connect")


# The driver's JVM.


def launch_jvm(conf: SparkConf, output: IO[bytes]) -> Jvm:
    """Start a JVM that writes to ``output``: ``SparkContext()`` would let it write to the terminal.

    The JVM gets a process session of its own, because Ctrl+C in a terminal goes to all processes of the terminal's
    session. Penstock answers Ctrl+C: it lets the JVM and its Python workers finish the running batch.
    """
    return launch_gateway(  # type: ignore[no-untyped-call]
        conf, {"stdout": output, "stderr": output, "start_new_session": True}
    )


def is_submitted() -> bool:
    """Whether spark-submit has started this process; its JVM then waits for a connection. No public call says so."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def connect_to_submitted_jvm() -> Jvm:
    """Connect to the JVM of spark-submit, as ``SparkContext()`` does, without making a context yet."""
    return launch_gateway()  # type: ignore[no-untyped-call]


def running_context() -> SparkContext | None:
    """Return this process's context, if there is one; the public ``getOrCreate`` would make one."""
    return SparkContext._active_spark_context


def running_jvm() -> Jvm | None:
    """Return the connection to this process's JVM; PySpark has no public way to end the JVM before Python ends."""
    return SparkContext._gateway


def forget_jvm() -> None:
    """Let the next session start another JVM; ``SparkContext.stop`` keeps the old one for that."""
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def driver_java_options(context: SparkContext) -> str:
    """Return the driver's Java options; the public ``getConf`` asks the JVM, which may have ended."""
    return context._conf.get("spark.driver.extraJavaOptions") or ""


def has_class(session: SparkSession, name: str) -> bool:
    """Whether the driver's JVM has this class (``org/example/Name``); PySpark only fails when it needs one."""
    jvm: Any = session._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader.getResource(f"{name}.class") is not None


@contextmanager
def jdbc_connection(session: SparkSession, url: str, *, driver: str, properties: Mapping[str, str]) -> Iterator[Any]:
    """Open a ``java.sql.Connection`` in the driver's JVM; Spark's public JDBC writer only writes rows."""
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry.register(driver)
    java_properties = jvm.java.util.Properties()
    for name, value in properties.items():
        java_properties.setProperty(name, value)
    connection = jvm.java.sql.DriverManager.getConnection(url, java_properties)
    try:
        yield connection
    finally:
        connection.close()


class HadoopFiles:
    """The file system of a folder, on whatever storage Spark can reach; PySpark reads and writes only tables there."""

    def __init__(self, session: SparkSession, folder: str) -> None:
        self._jvm: Any = session._jvm
        self._system = self._path(folder).getFileSystem(session._jsparkSession.sessionState().newHadoopConf())

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def move(self, source: str, target: str) -> bool:
        return bool(self._system.rename(self._path(source), self._path(target)))

    def remove(self, path: str) -> None:
        """Delete it with all that is in it."""
        self._system.delete(self._path(path), True)  # noqa: FBT003 - recursive

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)


@contextmanager
def errors_raised_only() -> Iterator[None]:
    """In the block, PySpark raises errors without logging them first; it has no setting for that."""
    loggers = [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


# Rows.


def collect_texts(rows: DataFrame) -> list[str]:
    """Return the first column, of type string, through Py4J.

    The public ``collect`` opens a socket, and leaves it to the garbage collector to close it.
    """
    found: Any = rows._jdf.collectAsList()
    return [str(row.getString(0)) for row in found]


def collect_json(rows: DataFrame) -> list[str]:
    """Return each row as JSON, through Py4J, for the same reason."""
    found: Any = rows._jdf.toJSON().collectAsList()
    return [str(text) for text in found]


def table_text(rows: DataFrame, count: int) -> str:
    """Return the first rows as the public ``show`` would print them; ``show`` leaves most control characters in."""
    return str(rows._jdf.showString(count, 0, False))  # noqa: FBT003 - no cut, not vertical


def collect_smallest(column: Column, most: int) -> Column:
    """Aggregate a column to a list of its smallest values; the public aggregates have no bound on memory."""
    return InternalFunction.collect_top_k(column, most, reverse=True)


# Plans and their runs.


def batch_execution(query: StreamingQuery) -> Execution:
    """Return the execution of the batch that is running; PySpark's ``lastProgress`` reports only finished ones."""
    return query._jsq.streamingQuery().lastExecution()


def as_batch(rows: DataFrame) -> tuple[DataFrame, Execution]:
    """Return the rows as ``foreachBatch`` would pass them, with the execution that will have their counts.

    Writing a DataFrame makes another execution, which PySpark does not return. Here all writes share one.
    """
    execution = rows._jdf.queryExecution()
    session = rows.sparkSession
    made = session._jsparkSession.internalCreateDataFrame(execution.toRdd(), rows._jdf.schema(), False)  # noqa: FBT003 - not streaming
    return DataFrame(made, session), execution


def observed_metrics(execution: Execution, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what ``DataFrame.observe`` counted under these names in a run; names of parts that did not run are absent.

    The public ``Observation`` waits forever if the rows go to Kafka. The execution has the counts as well, as soon
    as its job is over.
    """
    metrics = execution.observedMetrics()
    return {name: json.loads(metrics.apply(name).json()) for name in names if metrics.contains(name)}


def planned_metrics(rows: DataFrame) -> set[str]:
    """Return the names of all ``DataFrame.observe`` in the plan of these rows; the public API only prints plans."""
    found, plans = set(), [rows._jdf.queryExecution().analyzed()]
    while plans:
        plan = plans.pop()
        if plan.getClass().getSimpleName() == "CollectMetrics":
            found.add(str(plan.name()))
        children = plan.children()
        plans.extend(children.apply(number) for number in range(children.size()))
    return found


def reads_all_under(execution: Execution, metric: str) -> bool:
    """Whether a finished run has read all input of the ``DataFrame.observe`` with this name.

    It has if no node above can stop early. The public API only prints plans.
    """
    found, plans = [], [(execution.executedPlan(), True)]
    while plans:
        plan, is_whole = plans.pop()
        kind = _kind(plan)
        if kind == "CollectMetrics" and plan.name() == metric:
            found.append(is_whole)
        # Spark reads the input of a shuffle or broadcast to its end, whatever the nodes above it do.
        is_whole = kind in _SHUFFLES or (is_whole and kind in _READ_ALL)
        plans.extend((each, is_whole) for each in _children(plan, kind))
    return bool(found) and all(found)


def _kind(plan: Any) -> str:
    return str(plan.getClass().getSimpleName()).removesuffix("Exec")


def _children(plan: Any, kind: str) -> list[Any]:
    """Return the children, also of nodes that Spark itself treats as leaves."""
    if kind == "AdaptiveSparkPlan":
        return [plan.executedPlan()]
    if kind.endswith("QueryStage"):
        return [plan.plan()]
    if kind == "ReusedExchange":
        return [plan.child()]
    children = plan.children()
    return [children.apply(number) for number in range(children.size())]


# Tasks and batches.


class KafkaRange(NamedTuple):
    """The offsets from ``start`` up to, and without, ``end``."""

    topic: str
    partition: int
    start: int
    end: int


def task_count(rows: DataFrame) -> int:
    """Return how many tasks make these rows; the public ``rows.rdd`` would add a conversion to Python objects."""
    return int(rows._jdf.queryExecution().toRdd().getNumPartitions())


def kafka_range_of_each_task(execution: Execution) -> list[KafkaRange] | None:
    """Return the offsets that each task reads, in the order of the tasks; None where rows move between tasks.

    Spark's lineage shows it: a step that depends one to one on the step before has the same tasks. The public API shows
    neither the lineage of a DataFrame nor the offsets of a task.
    """
    data = execution.toRdd()
    while (ranges := _kafka_ranges(data)) is None:
        step = _only(data.dependencies())
        if step is None or step.getClass().getSimpleName() != "OneToOneDependency":
            return None
        data = step.rdd()
    if any(each is None for each in ranges):
        return None
    return [
        KafkaRange(
            str(each.topicPartition().topic()),
            int(each.topicPartition().partition()),
            int(each.fromOffset()),
            int(each.untilOffset()),
        )
        for each in ranges
    ]


def _kafka_ranges(data: Any) -> list[Any] | None:
    """Return the offset range of each task where this RDD reads Kafka; None in place of a task that has several."""
    match data.getClass().getSimpleName():
        case "DataSourceRDD":  # of a stream
            inputs = [_only(each.inputPartitions()) for each in data.partitions()]
            return [None if each is None else each.offsetRange() for each in inputs]
        case "KafkaSourceRDD":  # of a range with an end
            return [each.offsetRange() for each in data.partitions()]
    return None


def _only(found: Any) -> Any:
    """Return the only item of a Scala sequence; None if there is not exactly one."""
    return found.apply(0) if found.size() == 1 else None


def set_limit(query: StreamingQuery, size: int) -> bool:
    """Let the next batches take up to ``size`` offsets of each source; False where this Spark does not allow it.

    Spark reads the public option ``maxOffsetsPerTrigger`` once, when the query starts. From then on the query keeps the
    limit in a field, which its stream thread reads for each batch; this function sets that field. Only the stream
    thread may call this: it sets the field when it starts, and would overwrite a limit that another thread set before.
    """
    try:
        jvm: Any = SparkContext._jvm
        execution: Any = query._jsq.streamingQuery()
        limits = execution.uniqueSources()
        limit = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxRows(size)
        sources = limits.keysIterator()
        while sources.hasNext():
            limits = limits.updated(sources.next(), limit)
        getattr(execution, "uniqueSources_$eq")(limits)
    except (JvmError, AttributeError, TypeError):
        return False
    return True
