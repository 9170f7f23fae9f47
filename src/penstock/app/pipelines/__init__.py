"""Declarations of DataFrame pipelines: their sources, their function, their sinks."""

from penstock.app.pipelines.backfill_range import Span, read_log_position
from penstock.app.pipelines.pipeline import ONLY, OutputMode, Pipeline, checked_outputs, checked_sources
from penstock.app.pipelines.pipeline_source import META_COLUMNS, VALUE_COLUMN, Source, refuse_meta_columns
from penstock.app.pipelines.sinks import Console, Jdbc, Sink, Table, Topic
from penstock.app.pipelines.spark_schema import Shape

__all__ = [
    "META_COLUMNS",
    "ONLY",
    "VALUE_COLUMN",
    "Console",
    "Jdbc",
    "OutputMode",
    "Pipeline",
    "Shape",
    "Sink",
    "Source",
    "Span",
    "Table",
    "Topic",
    "checked_outputs",
    "checked_sources",
    "read_log_position",
    "refuse_meta_columns",
]
