"""The rules of `make release`, the files for forks, and the list of public names in docs/versioning.md."""

import importlib
import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest
import yaml

import penstock
from penstock import errors

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
# Not only names that are listed in `__all__` are public there, or not all of them are.
PARTLY_PUBLIC = {
    "penstock.assign.plan": {"Move", "Plan", "RebalancePause", "Side", "Spread", "plan"},
    "penstock.codecs": {"codec_of", "decoder_of"},
    "penstock.devkit": {"Embedded", "UpOptions"},
    "penstock.spark": {"run"},
}


def load_script(name: str) -> Any:
    loader = SourceFileLoader(f"script_{name}", str(ROOT / "scripts" / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


release = load_script("release")


def test_this_version_can_be_released() -> None:
    version = re.sub(r"\.dev\d+$", "", penstock.__version__)  # between two releases, the section does not exist yet
    if version == penstock.__version__:
        assert release.version_problems(version, CHANGELOG, []) == []
    assert release.extras_of(ROOT) == release.EXTRA_IMPORTS.keys()


@pytest.mark.parametrize(
    ("version", "changelog", "tags", "problem"),
    [
        ("0.2.0.dev0", "## 0.2.0.dev0 (2026-01-31)", [], "no version to release"),
        ("0.2.0", "## Unreleased\n## 0.1.0 (2026-01-31)", [], "no section for 0.2.0"),
        ("0.2.0", "## 0.2.0", [], "no section for 0.2.0"),  # without a date
        ("0.2.0", "## 0.2.0 (2026-01-31)", ["v0.2.1"], "has the tag v0.2.1"),
        ("0.2.0", "## 0.2.0 (2026-01-31)", ["v0.2.0", "vendor"], None),
        ("0.2.0rc1", "## 0.2.0rc1 (2026-01-31)", [], None),
    ],
)
def test_a_version_needs_a_number_a_section_and_the_right_tag(
    version: str, changelog: str, tags: list[str], problem: str | None
) -> None:
    found = release.version_problems(version, changelog, tags)
    assert [problem in each for each in found] == ([True] if problem else [])


def test_the_sdist_must_build_the_same_wheel() -> None:
    names = {"penstock/py.typed", "penstock/app.py", "penstock-1.dist-info/METADATA"}
    assert release.contents_problems(names, names) == []
    assert release.contents_problems(names, names - {"penstock/app.py"}) == [
        "The sdist lacks penstock/app.py, which the wheel has."
    ]
    assert release.contents_problems(names | {"tests/x.py"}, names | {"tests/x.py"}) == [
        "The wheel has tests/x.py, which is not a part of the package."
    ]


def test_the_changelog_begins_with_what_is_unreleased() -> None:
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading) for heading in headings[1:])


def test_the_page_about_versions_lists_the_public_names() -> None:
    page = (ROOT / "docs" / "versioning.md").read_text("utf-8")
    listed = {
        package: set(re.findall(r"`(\w+)`", names))
        for package, names in re.findall(r"^\| `(penstock[\w.]*)` \| (.+) \|$", page, re.MULTILINE)
    }
    assert listed.pop("penstock.events") == set()  # docs/running.md has the events
    error_names = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
    }
    assert listed.pop("penstock.errors") == error_names
    for package, names in listed.items():
        public = set(importlib.import_module(package).__all__) - {"__version__"}
        assert names == PARTLY_PUBLIC.get(package, public), package
        assert names <= public
    assert {"penstock", "penstock.testing", "penstock.stores", "penstock.assign"} <= listed.keys()


def test_the_workflow_runs_commands_that_exist_on_every_python() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    targets = {target for step in steps for target in re.findall(r"\bmake ([\w-]+)", step.get("run", ""))}
    assert targets == {"check", "test", "release"}
    assert targets <= set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert workflow["jobs"]["check"]["strategy"]["matrix"]["python"] == list(release.PYTHONS)
    assert workflow["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("form", ["bug.yml", "idea.yml"])
def test_an_issue_form_is_complete(form: str) -> None:
    content = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE" / form).read_text("utf-8"))
    assert {"name", "description", "body"} <= content.keys()
    assert len({field.get("id") for field in content["body"]}) == len(content["body"])
    assert any(field.get("validations", {}).get("required") for field in content["body"])
