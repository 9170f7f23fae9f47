"""Which jars a session gets, and which of them are optional."""

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SetupError
from penstock.jvm.coordinates import Coordinates
from penstock.spark.session import spark_session as session


def test_only_the_package_that_penstock_can_do_without_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def resolve(jars: Coordinates, **_options: Any) -> list[Path]:
        asked.append(jars.title)
        if "kafka" in jars.title:
            return []
        raise SetupError("the Maven registry has none", hint="Use another.")

    told: list[str] = []

    def tell(text: str, *, done: int = 0, total: int = 0, unit: str = "records") -> None:
        told.append(text)

    monkeypatch.setattr(session, "resolve", resolve)
    monkeypatch.setattr(session, "_missing", set())
    session.fetch_jars(["protobuf"], progress=tell)
    session.fetch_jars(["protobuf"], progress=tell)
    assert len(told) == 1
    assert "Python decodes Protobuf" in told[0]
    assert sum("protobuf" in each for each in asked) == 1, "once is enough"
    with pytest.raises(SetupError, match="the Maven registry has none"):
        session.fetch_jars(["avro"])
