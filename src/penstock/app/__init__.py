"""Declarations: apps, handlers and their options."""

from penstock.app.application import App
from penstock.app.attempt import RECORDS, Reading, attempts, attempts_async, breaker_error, halt_error
from penstock.app.batch import batch_attempts, batch_attempts_async
from penstock.app.handler import Handler, Start
from penstock.app.loading import load_app

__all__ = [
    "RECORDS",
    "App",
    "Handler",
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
