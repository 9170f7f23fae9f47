"""From a pipeline's function to the DataFrames of its outputs, with errors that name it."""

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from penstock.app import Pipeline
from penstock.app.pipelines import ONLY
from penstock.errors import ConfigError, PenstockError


def outputs_of(pipeline: Pipeline, sources: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """What the function returns for these sources, by the names that ``to`` has for it."""
    try:
        # One source goes to the one parameter, whatever its name.
        result = pipeline.function(*sources.values()) if len(sources) == 1 else pipeline.function(**sources)
    except PenstockError:
        raise
    except PySparkException as error:
        raise spark_said(pipeline, error) from error
    except Exception as error:
        raise _wrong(pipeline, f"its function raised {type(error).__name__}: {error}.", "Mend it.") from error
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


def spark_said(pipeline: Pipeline, error: PySparkException) -> ConfigError:
    """What Spark has against the user's plan, in its own words."""
    text = str(error).split("\nJVM stacktrace")[0].split(";\n")[0].strip()
    return _wrong(pipeline, f"Spark refuses it: {text.splitlines()[0]}", "Mend the function, or its output_mode.")


def _wrong(pipeline: Pipeline, problem: str, hint: str) -> ConfigError:
    return ConfigError(f"Pipeline {pipeline.name}: {problem}", hint=hint)
