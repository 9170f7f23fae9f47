"""Finds the partition and the offsets that each task of a plan reads."""

from penstock.errors import ConfigError
from penstock.spark.internals import Execution, kafka_range_of_each_task
from penstock.spark.pipelines.task_transaction import TaskRange


def task_ranges(execution: Execution, pipeline: str) -> list[TaskRange]:
    """Return the range of each task, in the order of the tasks; refuse a plan that moves rows between tasks."""
    ranges = kafka_range_of_each_task(execution)
    if ranges is None:
        raise _refused(pipeline)
    found = [TaskRange((each.topic, each.partition), each.start, each.end) for each in ranges]
    if len({each.tp for each in found}) < len(found):
        raise _refused(pipeline)
    return found


def _refused(pipeline: str) -> ConfigError:
    return ConfigError(
        f"Pipeline {pipeline} moves rows between tasks, so Penstock cannot write them to a topic exactly once.",
        hint="Nothing of this batch was written. Leave delivery= out, or write to a Table or Jdbc sink, which store "
        "each row once whatever the pipeline does.",
    )
