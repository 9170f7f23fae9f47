"""Calls a pipeline's function and checks what it returns. Errors name the pipeline."""

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from penstock.app import Pipeline
from penstock.app.pipelines import ONLY
from penstock.errors import ConfigError, PenstockError


def outputs_of(pipeline: Pipeline, sources: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the function's DataFrames by the names of ``to``."""
    try:
        # A single source is passed by position, whatever the name of the parameter.
        result = pipeline.function(*sources.values()) if len(sources) == 1 else pipeline.function(**sources)
    except PenstockError:
        raise
    except PySparkException as error:
        raise spark_refused(pipeline, error) from error
    except Exception as error:
        raise _wrong(pipeline, f"its function raised {type(error).__name__}: {error}.", "Fix the function.") from error
    if isinstance(result, DataFrame):
        result = {ONLY: result}
    if not isinstance(result, Mapping) or not all(isinstance(each, DataFrame) for each in result.values()):
        raise _wrong(
            pipeline, f"its function returned a {type(result).__name__}.", "Return a DataFrame, or a dict of them."
        )
    if set(result) != set(pipeline.outputs):
        returned, named = (", ".join(filter(None, names)) or "one DataFrame" for names in (result, pipeline.outputs))
        raise _wrong(pipeline, f"its function returned {returned}, and to= has {named}.", "Use the same names in both.")
    return dict(result)


def spark_refused(pipeline: Pipeline, error: PySparkException) -> ConfigError:
    """Return an error with Spark's reason why it refuses the user's plan."""
    text = str(error).split("\nJVM stacktrace")[0].split(";\n")[0].strip()
    return _wrong(
        pipeline,
        f"Spark refuses it: {text.splitlines()[0]}",
        "Fix the function, or change its output_mode or its sink.",
    )


def _wrong(pipeline: Pipeline, problem: str, hint: str) -> ConfigError:
    return ConfigError(f"Pipeline {pipeline.name}: {problem}", hint=hint)
