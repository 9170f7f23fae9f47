"""The scenarios of ``conformance``, on a real broker: what the testing kit promises, the engine keeps."""

import pytest

from bed import MakeTopic
from conformance.drivers import RealDriver
from conformance.scenarios import SCENARIOS, Scenario
from penstock.kafka import Cluster


@pytest.mark.parametrize("play", SCENARIOS, ids=lambda play: play.__name__)
def test_on_a_real_broker(play: Scenario, brokers: str, cluster: Cluster, make_topic: MakeTopic) -> None:
    play(RealDriver(brokers, cluster, make_topic))
