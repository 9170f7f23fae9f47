"""Declarations: apps, handlers and their options."""

from penstock.app.app_loader import load_app, load_module
from penstock.app.application import App
from penstock.app.attempts.attempt import RECORDS, halt_error, stop_error, worker_error
from penstock.app.attempts.plain_outputs import WriteValues, plain_runner
from penstock.app.attempts.record_adapter import Arguments, RecordAdapter, reader_by
from penstock.app.attempts.task_cancellation import end_task, forget_cancellation, is_ended
from penstock.app.attempts.work_runner import (
    RunWork,
    async_work_runner,
    batch_runner,
    single_record_runner,
    work_runner,
)
from penstock.app.handler import Handler
from penstock.app.options import refuse_unsupported
from penstock.app.options.consume_options import Start
from penstock.app.pipelines import (
    BatchId,
    Console,
    ForeachBatch,
    Jdbc,
    Maintenance,
    Pipeline,
    Sink,
    Source,
    Table,
    Topic,
)
from penstock.app.routing.route_group import RouteGroup
from penstock.app.routing.routed_attempts import attempts, attempts_async, batch_attempts, batch_attempts_async
from penstock.app.runs.run_control import Control, NoControl, PartitionProgress, engine_is_elsewhere
from penstock.app.signature import called

__all__ = [
    "RECORDS",
    "App",
    "Arguments",
    "BatchId",
    "Console",
    "Control",
    "ForeachBatch",
    "Handler",
    "Jdbc",
    "Maintenance",
    "NoControl",
    "PartitionProgress",
    "Pipeline",
    "RecordAdapter",
    "RouteGroup",
    "RunWork",
    "Sink",
    "Source",
    "Start",
    "Table",
    "Topic",
    "WriteValues",
    "async_work_runner",
    "attempts",
    "attempts_async",
    "batch_attempts",
    "batch_attempts_async",
    "batch_runner",
    "called",
    "end_task",
    "engine_is_elsewhere",
    "forget_cancellation",
    "halt_error",
    "is_ended",
    "load_app",
    "load_module",
    "plain_runner",
    "reader_by",
    "refuse_unsupported",
    "single_record_runner",
    "stop_error",
    "work_runner",
    "worker_error",
]
