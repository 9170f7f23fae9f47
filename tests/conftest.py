"""Fixtures of all tests. They keep tests away from the user's own folders."""

from collections.abc import Iterator

import pytest

from penstock.core.settings import known


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Put state, data and checkpoints into a folder of this run. Downloads stay in the user's cache, to save time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_HOME", str(tmp_path_factory.mktemp("home")))
        patch.delenv("PENSTOCK_BROKERS", raising=False)
        yield


@pytest.fixture(autouse=True)
def _no_secrets_of_others() -> Iterator[None]:
    """Forget the passwords of each test, so that later tests do not hide the same words."""
    yield
    known.forget()
