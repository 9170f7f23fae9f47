"""Calls the user's functions for partitions that come and go."""

from collections.abc import Sequence

from penstock.app import Handler
from penstock.core.records.record import TopicPartition
from penstock.errors import CallbackError


def call_back(handler: Handler, option: str, tps: Sequence[TopicPartition]) -> CallbackError | None:
    """Call the function of this option, if there is one. Returns the error that stops the app, if it raises."""
    function = getattr(handler, option)
    if function is None or not tps:
        return None
    try:
        function(list(tps))
    except Exception as error:  # noqa: BLE001 - any exception stops the app
        problem = f"{option} of handler {handler.name} raised {type(error).__name__}: {error}."
        hint = f"Fix {option} and start the app again. Kafka redelivers the records that were not committed."
        return CallbackError(problem, hint=hint)
    return None
