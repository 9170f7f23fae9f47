"""README.md works as printed on Python 3.12, in an empty folder with only the wheel."""

from pathlib import Path

import pytest

from docs_check.environment import ROOT
from docs_check.reader import Reader


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("page", [ROOT / "README.md"], ids=lambda page: page.name)
def test_the_readme_works_from_top_to_bottom(readme_reader: Reader, page: Path) -> None:
    readme_reader.follow(page)
