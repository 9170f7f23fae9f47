"""The example of the documentation declares what it says."""

import sys
from pathlib import Path

import pytest

from penstock.app import load_app

EXAMPLES = Path(__file__).parents[4] / "examples" / "pipelines"


def test_the_example_loads_without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "revenue", raising=False)
    (pipeline,) = load_app("revenue:app").pipelines
    assert (pipeline.name, pipeline.topics, pipeline.dead_letter) == ("revenue", ("sales",), "sales.dlq")
    assert {name: [str(sink) for sink in sinks] for name, sinks in pipeline.outputs.items()} == {
        "minutes": ["topic revenue"],
        "sales": ["delta table sales"],
    }
