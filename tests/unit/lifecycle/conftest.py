import pytest

from lifecycle_fakes import FakeEngine
from penstock import App
from penstock.lifecycle import app_run


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """The engine of every app of this test."""
    fake = FakeEngine()
    monkeypatch.setattr(app_run, "run_on_engine", fake)
    return fake


@pytest.fixture
def app() -> App:
    app = App("shop", brokers="declared:9092")

    @app.consume("orders")
    def handle(order: bytes) -> None: ...

    return app
