"""Declarations: apps, handlers and their options."""

from penstock.app.application import App
from penstock.app.attempt import attempts, attempts_async, halt_error
from penstock.app.handler import Handler, Start
from penstock.app.loading import load_app

__all__ = ["App", "Handler", "Start", "attempts", "attempts_async", "halt_error", "load_app"]
