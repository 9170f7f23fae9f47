"""Which offsets of which partition each task of a plan has, where that can be said."""

from typing import Any

from penstock.errors import ConfigError
from penstock.spark.transaction import TaskRange


def task_ranges(execution: Any, pipeline: str) -> list[TaskRange]:
    """By number of the task, for a JVM ``QueryExecution`` in which no row leaves the task that has read it.

    Spark's own lineage says so: each step that is one to one has the same tasks as the step before.
    """
    data = execution.toRdd()
    while True:
        match _name(data):
            case "DataSourceRDD":  # of a stream
                ranges = [_only(each.inputPartitions(), pipeline).offsetRange() for each in data.partitions()]
                break
            case "KafkaSourceRDD":  # of a range that is over
                ranges = [each.offsetRange() for each in data.partitions()]
                break
        step = _only(data.dependencies(), pipeline)
        if _name(step) != "OneToOneDependency":
            raise _refused(pipeline)
        data = step.rdd()
    found = [_task_range(each) for each in ranges]
    if len({each.tp for each in found}) < len(found):
        raise _refused(pipeline)
    return found


def _only(found: Any, pipeline: str) -> Any:
    if found.size() != 1:
        raise _refused(pipeline)
    return found.apply(0)


def _name(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())


def _task_range(offsets: Any) -> TaskRange:
    topic, number = offsets.topicPartition().topic(), offsets.topicPartition().partition()
    return TaskRange((str(topic), int(number)), int(offsets.fromOffset()), int(offsets.untilOffset()))


def _refused(pipeline: str) -> ConfigError:
    return ConfigError(
        f"Pipeline {pipeline} moves rows between tasks, so they cannot be written to a topic exactly once.",
        hint="Nothing of this batch was written. Leave delivery= out, or write to a Table or Jdbc sink, which have "
        "each row once whatever the pipeline does.",
    )
