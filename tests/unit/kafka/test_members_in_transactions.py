"""Group metadata of a self-managed member in librdkafka's private format."""

import sys

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.errors import SetupError
from penstock.kafka import make_consumer
from penstock.kafka.client.librdkafka_internals import TESTED_LIBRDKAFKA, member_in, member_metadata
from penstock.kafka.client.transactions import group_metadata

NOWHERE = "127.0.0.1:1"


def test_the_metadata_equals_what_the_installed_client_writes() -> None:
    # The metadata of a static consumer that has not joined differs from a member's only in member id and generation.
    consumer = make_consumer(NOWHERE, "grüppe", settings={}, member={"group.instance.id": "till-1"})
    written = consumer.consumer_group_metadata()
    consumer.close()
    own = group_metadata(NOWHERE, "grüppe", settings={})
    member = member_metadata(own, "grüppe", "penstock-1", 7, static_id="till-1")
    assert member.replace(b"penstock-1", b"").replace((7).to_bytes(4, sys.byteorder), b"\xff" * 4) == written


def test_an_unknown_format_is_an_error_that_names_the_versions() -> None:
    own = group_metadata(NOWHERE, "shop", settings={})
    with pytest.raises(SetupError, match="in a format that Penstock does not know") as caught:
        member_metadata(own.replace(b"v2", b"v3"), "shop", "m", 7, static_id=None)
    assert confluent_kafka.libversion()[0] in caught.value.problem
    assert f"pip install confluent-kafka=={TESTED_LIBRDKAFKA}" in caught.value.hint


def test_the_tested_librdkafka_is_installed_here() -> None:
    """After an upgrade: check that the tests of this file pass, then change TESTED_LIBRDKAFKA."""
    assert confluent_kafka.libversion()[0] == TESTED_LIBRDKAFKA


@pytest.mark.parametrize(("member", "generation"), [("", 7), ("m", -1), ("", -1)])
def test_metadata_without_a_generation_is_refused_because_brokers_do_not_fence_it(member: str, generation: int) -> None:
    own = group_metadata(NOWHERE, "shop", settings={})
    with pytest.raises(KafkaException) as caught:
        member_metadata(own, "shop", member, generation, static_id=None)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("static_id", [None, "till-1"])
def test_the_client_s_metadata_is_read_back(static_id: str | None) -> None:
    own = group_metadata(NOWHERE, "grüppe", settings={})
    written = member_metadata(own, "grüppe", "penstock-1", 7, static_id=static_id)
    assert member_in(written, "grüppe") == ("penstock-1", 7, static_id)
    assert member_in(own, "grüppe") is None
    for other in (None, b"", b"CGMDv3:" + written[7:], written + b"more", written[:-1], written.replace(b"gr", b"kr")):
        assert member_in(other, "grüppe") is None
