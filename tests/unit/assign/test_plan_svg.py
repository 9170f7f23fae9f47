"""A plan as an SVG: every cell shows the move of its partition, and nothing is outside the picture."""

from collections import Counter
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from penstock.assign import ASSIGNORS, CooperativeSticky, Group, Member, Range, Topic
from penstock.assign.member_labels import labels
from penstock.assign.plan import Plan, plan
from penstock.assign.plan_svg import picture
from penstock.assign.what_if import with_members
from penstock.errors import ConfigError
from penstock.testing.assignor_check import groups

SVG = "{http://www.w3.org/2000/svg}"


def drawn(made: Plan, group: Group, title: str = "a plan") -> ET.Element:
    return ET.fromstring(picture(title, [made], labels(group)))


def boxes(root: ET.Element) -> list[tuple[str, float, float, float, float]]:
    found = []
    for panel in root.iter(f"{SVG}g"):
        dx, dy = (float(each) for each in panel.attrib["transform"][len("translate(") : -1].split(","))
        for box in panel.iter(f"{SVG}rect"):
            x, y, wide, tall = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
            found.append((box.attrib["class"], x + dx, y + dy, wide, tall))
    return found


@given(groups())
@settings(max_examples=40)
def test_every_cell_shows_the_move_of_a_partition_and_all_are_visible(group: Group) -> None:
    changed = with_members(group, "+2")
    for assignor in (CooperativeSticky(), Range()):
        made = plan(group, assignor, changed=changed)
        root = drawn(made, changed)
        wide, tall = float(root.attrib["width"]), float(root.attrib["height"])
        found = boxes(root)
        assert all(x >= 0 and y >= 0 and x + w <= wide and y + h <= tall for _, x, y, w, h in found)
        kinds = Counter(kind for kind, *_ in found)
        before = {tp for had in made.before.partitions.values() for tp in had}
        after = {tp for has in made.after.partitions.values() for tp in has}
        moved = {move.tp for move in made.moves}
        # One of each belongs to the legend.
        assert kinds["gets"] - 1 == len(moved)
        assert kinds["gives"] - 1 == len((moved & before) | (before - after))
        assert kinds["keeps"] - 1 == len(after - moved)


def test_names_are_shown_as_they_are_and_do_no_harm() -> None:
    group = Group.of([Member(id='<b>&"\x07' * 20, topics=("t",), owned=(("t", 0),))], {"t": Topic(1, lag=(5,))})
    root = drawn(plan(group, Range()), group, title="</svg><script>")
    texts = [each.text or "" for each in root.iter(f"{SVG}text")]
    assert texts[0] == "</svg><script>"
    assert any(text.startswith('<b>&"\\x07') and text.endswith("…") for text in texts)
    assert "lag" in texts
    assert not list(root.iter(f"{SVG}script"))


def test_several_plans_stand_below_each_other() -> None:
    group = Group.of([Member(id="a", topics=("t",))], {"t": 3})
    root = ET.fromstring(picture("all", [plan(group, each) for each in ASSIGNORS.values()], labels(group)))
    tops = [each.attrib["transform"] for each in root.iter(f"{SVG}g")]
    assert len(set(tops)) == len(ASSIGNORS)


def test_a_plan_that_is_too_large_to_look_at_is_refused() -> None:
    members = [Member(id=f"m-{number}", topics=("t",)) for number in range(200)]
    group = Group.of(members, {"t": 1_000})
    with pytest.raises(ConfigError, match="200,000 cells"):
        picture("large", [plan(group, Range())], labels(group))
