"""Declarations: apps, handlers and their options."""

from penstock.app.application import App
from penstock.app.attempt import RECORDS, Reading, attempts, attempts_async, breaker_error, halt_error
from penstock.app.batch import batch_attempts, batch_attempts_async
from penstock.app.control import Control, PartitionProgress
from penstock.app.fetching import Start
from penstock.app.handler import Handler
from penstock.app.loading import load_app

__all__ = [
    "RECORDS",
    "App",
    "Control",
    "Handler",
    "PartitionProgress",
    "Reading",
    "Start",
    "attempts",
    "attempts_async",
    "batch_attempts",
    "batch_attempts_async",
    "breaker_error",
    "halt_error",
    "load_app",
]
