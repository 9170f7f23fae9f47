"""Masters and Spark's settings, before any JVM starts."""

import os
import socket
from pathlib import Path

import pytest

from penstock.errors import ConfigError, ServerError
from penstock.spark.session.masters import check_master, is_local, is_on_this_machine
from penstock.spark.session.spark_conf import parse_conf, session_conf


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("spark:/host", "not a Spark master"),
        ("spark://host:port", "not a Spark master"),
        ("spark://host:70000", "not a Spark master"),
        ("spark://:7077", "not a Spark master"),
        ("yarn-client", "not a Spark master"),
        ("local[two]", "not a Spark master"),
    ],
)
def test_what_is_no_master_is_refused_with_what_to_write(master: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        check_master(master)
    assert "spark://HOST:PORT" in caught.value.hint


def test_a_master_that_does_not_answer_is_an_error_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(ServerError, match=rf"No Spark master answers at 'spark://127.0.0.1:{port}'"):
            check_master(f"spark://127.0.0.1:{port}")


def test_of_several_masters_one_that_answers_is_enough() -> None:
    with socket.socket() as server, socket.socket() as free:
        server.bind(("127.0.0.1", 0))
        server.listen()
        free.bind(("127.0.0.1", 0))
        check_master(f"spark://127.0.0.1:{free.getsockname()[1]},127.0.0.1:{server.getsockname()[1]}")


def test_yarn_needs_to_know_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(ConfigError, match="address of YARN is unknown") as caught:
        check_master("yarn")
    assert "HADOOP_CONF_DIR" in caught.value.hint


def test_only_masters_on_this_machine_keep_the_driver_to_loopback() -> None:
    here = ["local", "local[*]", "local-cluster[2,1,1024]", "spark://127.0.0.1:7077", "spark://localhost:1,127.0.0.1:2"]
    assert all(map(is_on_this_machine, here))
    assert not any(map(is_on_this_machine, ["yarn", "k8s://https://127.0.0.1:6443", "spark://127.0.0.1:1,other:2"]))
    assert [master for master in here if is_local(master)] == ["local", "local[*]"]


def conf(master: str, **given: str) -> dict[str, str]:
    named = {name.replace("__", "."): value for name, value in given.items()}
    return session_conf("shop", master, jars=[Path("/jars/kafka.jar")], python_path="/own", given=named)


def test_locally_workers_see_this_path_and_on_clusters_nothing_of_this_machine() -> None:
    local, cluster = conf("local[2]"), conf("spark://far:7077")
    assert (local["spark.executorEnv.PYTHONPATH"], local["spark.driver.extraClassPath"]) == ("/own", "/jars/kafka.jar")
    assert "spark.jars" not in local
    assert cluster["spark.jars"] == "/jars/kafka.jar"
    assert not {"spark.executorEnv.PYTHONPATH", "spark.driver.host", "spark.sql.shuffle.partitions"} & {*cluster}
    assert conf("spark://127.0.0.1:7077")["spark.driver.host"] == "127.0.0.1"


def test_what_a_user_gives_wins_and_lists_grow() -> None:
    cluster = conf("spark://127.0.0.1:7077", spark__driver__host="10.0.0.7", spark__jars="/mine.jar")
    assert (cluster["spark.driver.host"], cluster["spark.jars"]) == ("10.0.0.7", "/jars/kafka.jar,/mine.jar")
    local = conf("local[*]", spark__executorEnv__PYTHONPATH="/more", spark__driver__extraClassPath="/mine.jar")
    assert local["spark.executorEnv.PYTHONPATH"] == f"/own{os.pathsep}/more"
    assert local["spark.driver.extraClassPath"] == f"/jars/kafka.jar{os.pathsep}/mine.jar"


def test_avro_may_claim_no_more_than_memory_has_on_the_driver_and_on_executors() -> None:
    given = {"spark.driver.extraJavaOptions": "-Xss4m"}
    conf = session_conf("a", "local[2]", jars=[], python_path="", given=given, packages=["avro"])
    assert "-Dorg.apache.avro.limits.collectionItems.maxLength=" in conf["spark.executor.extraJavaOptions"]
    assert conf["spark.driver.extraJavaOptions"] == f"{conf['spark.executor.extraJavaOptions']} -Xss4m"


def test_settings_of_the_command_line_keep_what_is_behind_the_first_equals_sign() -> None:
    given = ["spark.executor.memory=4g", "spark.executor.extraJavaOptions=-Da=b -Dc=d"]
    assert parse_conf(given) == {
        "spark.executor.memory": "4g",
        "spark.executor.extraJavaOptions": "-Da=b -Dc=d",
    }


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("spark.executor.memory", "NAME=VALUE"),
        ("executor.memory=4g", "spark.executor.memory"),
        ("spark.master=local", "--master"),
        ("spark.submit.deployMode=cluster", "spark-submit"),
        ("spark.sql.streaming.checkpointLocation=/x", "--checkpoint"),
        ("spark.remote=sc://host", "--master"),
    ],
)
def test_settings_that_are_none_or_decided_elsewhere_are_refused(flag: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_conf([flag])
    assert hint in caught.value.hint
