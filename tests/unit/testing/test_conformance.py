"""The scenarios of ``conformance``, on the testing kit."""

from pathlib import Path

import pytest

from conformance.drivers import KitDriver
from conformance.scenarios import Scenario, scenarios_on


@pytest.mark.parametrize("play", scenarios_on("kit"), ids=lambda play: play.__name__)
def test_on_the_kit(play: Scenario, tmp_path: Path) -> None:
    play(KitDriver(tmp_path))
