"""``app.progress()`` and ``app.commit()`` on Spark: an error that says what to use instead."""

from penstock.app import NoControl, engine_is_elsewhere

NO_PROGRESS = (
    "The Spark engine does not answer app.progress() and app.commit().",
    "For the lag, use penstock lag or the event batch_finished; Spark commits each batch itself when it has finished.",
)
_IN_A_TASK = NoControl(
    "The Spark engine does not answer app.progress() and app.commit(), nor app.pause() and others in a handler.",
    "Handlers run in Spark's tasks. Use penstock lag and penstock pause, or call app.pause() in the program itself.",
)


def engine_is_on_the_driver() -> None:
    """Make app.progress() and app.commit() raise that error here. Each task calls it, in Spark's Python worker."""
    engine_is_elsewhere(_IN_A_TASK)
