"""The scenarios of ``conformance``, on a real broker: what the testing kit promises, the engine keeps."""

from pathlib import Path

import pytest

from bed import MakeTopic
from conformance.drivers import LocalDriver, OpenDriver
from conformance.scenarios import Scenario, scenarios_on
from penstock.kafka import Cluster


@pytest.mark.parametrize("play", scenarios_on("local"), ids=lambda play: play.__name__)
def test_on_a_real_broker(
    play: Scenario, brokers: str, cluster: Cluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    play(LocalDriver(brokers, cluster, make_topic, tmp_path))


@pytest.mark.parametrize("play", scenarios_on("open"), ids=lambda play: play.__name__)
def test_as_an_open_member(
    play: Scenario, brokers: str, cluster: Cluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    play(OpenDriver(brokers, cluster, make_topic, tmp_path))
