"""What other processes may know about the Spark session of this one."""

from penstock.core.reports.spark_activity import SparkSessionFacts
from penstock.spark.internals import JvmError, running_context


def session_facts() -> SparkSessionFacts | None:
    """Return master, application and the address of Spark's own UI (None if it is off); None without a session.

    A Spark Connect session belongs to its server, which knows these.
    """
    context = running_context()
    if context is None:
        return None
    try:
        return SparkSessionFacts(context.master or "", context.applicationId or "", context.uiWebUrl)
    except (JvmError, ConnectionError):  # the JVM has just ended
        return None
