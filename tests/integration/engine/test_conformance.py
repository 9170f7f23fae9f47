"""The scenarios of ``conformance`` on a real broker: the engine behaves like the testing kit."""

from pathlib import Path

import pytest

from conformance.drivers import LocalDriver, OpenDriver
from conformance.scenarios import Scenario, scenarios_on
from kafka_helpers import MakeTopic
from penstock.kafka import Cluster


@pytest.mark.parametrize("play", scenarios_on("local"), ids=lambda play: play.__name__)
def test_on_a_real_broker(
    play: Scenario, brokers: str, cluster: Cluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    play(LocalDriver(brokers, cluster, make_topic, tmp_path))


@pytest.mark.parametrize("play", scenarios_on("self-managed"), ids=lambda play: play.__name__)
def test_as_a_self_managed_member(
    play: Scenario, brokers: str, cluster: Cluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    play(OpenDriver(brokers, cluster, make_topic, tmp_path))
