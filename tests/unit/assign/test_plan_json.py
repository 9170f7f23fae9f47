"""Groups in files are read as they were written, and an error names the wrong part."""

import json

import pytest
from hypothesis import given, settings

from penstock.assign import CooperativeSticky, Group
from penstock.assign.plan import plan
from penstock.assign.plan_json import read_group, write_group, write_plan
from penstock.errors import ConfigError
from penstock.testing.assignor_check import groups


@given(groups())
@settings(max_examples=50)
def test_a_group_comes_back_as_it_was(group: Group) -> None:
    back = read_group(json.loads(json.dumps(write_group(group))))
    assert back.topics == group.topics
    for read, member in zip(back.members, group.members, strict=True):
        assert set(read.owned) == set(member.owned)
        assert (read.id, read.topics, read.rack, read.weight) == (member.id, member.topics, member.rack, member.weight)


@given(groups())
@settings(max_examples=20)
def test_a_plan_can_be_written_as_json(group: Group) -> None:
    made = plan(group, CooperativeSticky())
    assert len(json.loads(json.dumps(write_plan(made)))["moves"]) == len(made.moves)


BAD = [
    ([], "is not a table"),
    ({"member": []}, "unknown field 'member'"),
    ({"members": {}}, "members is not a list"),
    ({"members": [{}]}, "no id"),
    ({"members": [{"id": "a", "topics": "orders"}]}, "'orders' is not a list"),
    ({"members": [{"id": "a", "owned": ["orders"]}]}, "is not a table"),
    ({"members": [{"id": "a", "owned": {"orders": ["x"]}}]}, "cannot be read"),
    ({"members": [{"id": "a", "weight": "heavy"}]}, "weight 'heavy'"),
    ({"members": [{"id": "a", "generation": "x"}]}, "cannot be read"),
    ({"members": [{"id": "a", "colour": 1}]}, "'colour'"),
    ({"topics": {"orders": "12"}}, "is not a table"),
    ({"topics": {"orders": {}}}, "no number of partitions"),
    ({"topics": {"orders": {"partitions": "12"}}}, "'12' partitions"),
    ({"topics": {"orders": {"partitions": 1, "lag": 5}}}, "5 is not a list"),
    ({"topics": {"orders": {"partitions": 1, "lag": ["x"]}}}, "cannot be read"),
    ({"topics": {"orders": {"partitions": 1, "size": 5}}}, "'size'"),
]


@pytest.mark.parametrize(("data", "text"), BAD, ids=[text for _, text in BAD])
def test_an_error_names_the_wrong_part(data: object, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_group(data)
    assert text in raised.value.problem
    assert raised.value.hint
