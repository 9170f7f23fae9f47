"""A Spark cluster of several processes."""

from collections.abc import Iterator

import pytest

from standalone import StandaloneCluster


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A Spark cluster of a master and two workers; started for the first test that asks."""
    with StandaloneCluster(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster
