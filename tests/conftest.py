"""Fixtures of all tests. They keep tests away from the user's own folders."""

from collections.abc import Iterator

import pytest

from penstock.core.settings import known


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """State, data and checkpoints in a folder of this run; downloads stay in the user's cache, or runs would wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_HOME", str(tmp_path_factory.mktemp("home")))
        patch.delenv("PENSTOCK_BROKERS", raising=False)
        yield


@pytest.fixture(autouse=True)
def _no_secrets_of_others() -> Iterator[None]:
    """A password of one test must not hide a word from the next."""
    yield
    known.forget()
