"""The scenarios of ``conformance``, on the testing kit."""

import pytest

from conformance.drivers import KitDriver
from conformance.scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize("play", SCENARIOS, ids=lambda play: play.__name__)
def test_on_the_kit(play: Scenario) -> None:
    play(KitDriver())
