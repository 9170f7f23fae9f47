"""Declarations of DataFrame pipelines: their sources, their function, their sinks."""

from penstock.app.pipelines.backfill_range import Span, read_log_position
from penstock.app.pipelines.batch_id import BatchId
from penstock.app.pipelines.expectations import UnmetAction
from penstock.app.pipelines.maintenance import Maintenance
from penstock.app.pipelines.pipeline import ONLY, Pipeline, checked_outputs, checked_sources
from penstock.app.pipelines.pipeline_options import PIPELINE_OPTIONS, OutputMode, PipelineOptions, pipeline_values
from penstock.app.pipelines.pipeline_source import META_COLUMNS, VALUE_COLUMN, Source, refuse_meta_columns
from penstock.app.pipelines.sinks import Console, Database, ForeachBatch, Jdbc, Sink, Table, Topic
from penstock.app.pipelines.spark_schema import Shape

__all__ = [
    "META_COLUMNS",
    "ONLY",
    "PIPELINE_OPTIONS",
    "VALUE_COLUMN",
    "BatchId",
    "Console",
    "Database",
    "ForeachBatch",
    "Jdbc",
    "Maintenance",
    "OutputMode",
    "Pipeline",
    "PipelineOptions",
    "Shape",
    "Sink",
    "Source",
    "Span",
    "Table",
    "Topic",
    "UnmetAction",
    "checked_outputs",
    "checked_sources",
    "pipeline_values",
    "read_log_position",
    "refuse_meta_columns",
]
