"""Offsets of groups are set on a real broker: shown first, saved, and restored."""

from pathlib import Path

import pytest

from cli_helpers import Joined, Penstock, offsets_of, set_offsets
from kafka_helpers import MakeTopic, produce
from penstock.core.progress.offset_map import encode
from penstock.kafka import Cluster
from penstock.kafka.admin.consumer_groups import CommittedOffset, Groups
from penstock.paths import checkpoint_root


@pytest.fixture
def topic(brokers: str, make_topic: MakeTopic) -> str:
    name = make_topic(2)
    for partition in range(2):
        produce(brokers, name, range(10), partition=partition)
    return name


def test_a_reset_is_only_shown_until_it_is_to_be_executed(
    penstock: Penstock, cluster: Cluster, group: str, topic: str
) -> None:
    set_offsets(cluster, group, {(topic, 0): 7, (topic, 1): 2})
    plan = penstock.json("offsets", "reset", group, "--topic", topic, "--to-offset", "4")
    assert [(each["old"], each["new"], each["repeated"], each["skipped"]) for each in plan["moves"]] == [
        (7, 4, 3, 0),
        (2, 4, 0, 2),
    ]
    assert all(each["from"] <= each["to"] for each in plan["moves"])
    assert not plan["executed"]
    assert offsets_of(cluster, group) == {(topic, 0): 7, (topic, 1): 2}


def test_a_reset_and_then_undo_leaves_offsets_and_offset_map_as_before(
    penstock: Penstock, cluster: Cluster, group: str, topic: str
) -> None:
    offset_map = encode(3, [(5, 7)])
    assert offset_map
    set_offsets(cluster, group, {(topic, 0): CommittedOffset(3, offset_map)})
    before = Groups(cluster).committed([group])[group]
    # Partition 1 has no commit: the reset gives it one, and undo takes that back.
    penstock("offsets", "reset", group, "--topic", topic, "--to-earliest", "--execute", "--yes")
    assert Groups(cluster).committed([group])[group] == {(topic, 0): CommittedOffset(0), (topic, 1): CommittedOffset(0)}
    penstock("offsets", "undo", group, "--execute", "--yes")
    assert Groups(cluster).committed([group])[group] == before


def test_undo_goes_back_step_by_step_and_then_has_nothing_left(
    penstock: Penstock, cluster: Cluster, group: str, topic: str
) -> None:
    set_offsets(cluster, group, {(topic, 0): 3})
    for offset in ("5", "8"):
        penstock("offsets", "reset", group, "--topic", f"{topic}:0", "--to-offset", offset, "--execute", "-y")
    for expected in (5, 3):
        penstock("offsets", "undo", group, "--execute", "-y")
        assert offsets_of(cluster, group) == {(topic, 0): expected}
    refused = penstock("offsets", "undo", group, "--execute", "-y", ok=False)
    assert refused.code == 1
    assert "nothing to undo" in refused.err


def test_a_group_with_members_is_refused_by_name_and_nothing_changes(
    penstock: Penstock, brokers: str, cluster: Cluster, group: str, topic: str
) -> None:
    member = Joined(brokers, group, topic)
    try:
        member.commit(topic, 0, 4)
        for execute in ([], ["--execute", "--yes"]):
            refused = penstock("offsets", "reset", group, "--all-topics", "--to-earliest", *execute, ok=False)
            assert refused.code == 1
            assert "is active (Stable): bystander at 127.0.0.1" in refused.err
        assert penstock("groups", "rm", group, "--yes", ok=False).code == 1
        assert offsets_of(cluster, group) == {(topic, 0): 4}
    finally:
        member.close()


def test_exported_offsets_can_be_imported_into_another_group(
    penstock: Penstock, cluster: Cluster, group: str, topic: str, tmp_path: Path
) -> None:
    set_offsets(cluster, group, {(topic, 0): 7, (topic, 1): 2})
    file = tmp_path / "offsets.csv"
    file.write_text(penstock("offsets", "export", group).out)
    assert file.read_text() == f"{topic},0,7\n{topic},1,2\n"
    other = f"{group}-other"
    assert penstock("offsets", "import", other, str(file), "--execute", "-y", ok=False).code == 1
    penstock("offsets", "import", other, str(file), "--new-group", "--execute", "-y")
    assert offsets_of(cluster, other) == {(topic, 0): 7, (topic, 1): 2}


def test_many_groups_are_reset_at_once(penstock: Penstock, cluster: Cluster, group: str, topic: str) -> None:
    names = [f"{group}-{number}" for number in range(3)]
    for name in names:
        set_offsets(cluster, name, {(topic, 0): 5})
    penstock("offsets", "reset", *names, "--all-topics", "--shift-by", "-2", "--execute", "-y")
    assert [offsets_of(cluster, name) for name in names] == [{(topic, 0): 3}] * 3


def test_the_checkpoint_of_a_group_s_pipeline_is_moved_aside(
    penstock: Penstock, cluster: Cluster, group: str, topic: str
) -> None:
    set_offsets(cluster, group, {(topic, 0): 5})
    warned = penstock.json("offsets", "reset", group, "--all-topics", "--to-earliest")
    assert any("Spark pipeline" in each for each in warned["warnings"])
    folder = checkpoint_root() / cluster.id() / group / "ship"
    (folder / "offsets").mkdir(parents=True)
    plan = penstock.json("offsets", "reset", group, "--all-topics", "--to-earliest")
    assert plan["checkpoints"] == {group: [str(folder)]}
    assert plan["warnings"] == []
    assert folder.exists()
    penstock("offsets", "reset", group, "--all-topics", "--to-earliest", "--execute", "-y")
    assert not folder.exists()
    assert folder.with_name("ship.aside").exists()


def test_settings_come_from_a_file_the_environment_or_flags_and_a_wrong_one_is_named(
    penstock: Penstock, brokers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(f'brokers = "{brokers}"\n[settings]\n"client.id" = "ops"\n[handlers.ship]\nconcurrency = 5\n')
    monkeypatch.delenv("PENSTOCK_BROKERS")
    monkeypatch.setenv("PENSTOCK_SHIP_CONCURRENCY", "7")
    penstock("groups", "ls", "--config", str(file))
    refused = penstock("groups", "ls", "--config", str(file), "--set", "sesion.timeout.ms=1", ok=False)
    assert refused.code == 2
    assert "session.timeout.ms" in refused.err
    secret = penstock(
        "groups",
        "ls",
        "--config",
        str(file),
        "--set",
        "security.protocol=sasl_plaintext",
        "--set",
        "sasl.mechanism=NOPE",
        "--set",
        "sasl.password=hunter2",
        ok=False,
    )
    assert secret.code != 0
    assert "hunter2" not in secret.err + secret.out


def test_offsets_of_a_missing_partition_are_refused_with_the_numbers_of_existing_ones(
    penstock: Penstock, cluster: Cluster, group: str, topic: str, tmp_path: Path
) -> None:
    set_offsets(cluster, group, {(topic, 0): 3})
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,1\n{topic},99,1\n")
    refused = penstock("offsets", "import", group, str(file), ok=False)
    assert f"Topic '{topic}' has no partition 99." in refused.err
    assert "It has 2, from 0 to 1." in refused.err
