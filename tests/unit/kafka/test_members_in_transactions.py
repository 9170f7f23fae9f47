"""As whom a transaction is committed, where the client is no member itself."""

import sys

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.errors import SetupError
from penstock.kafka import make_consumer
from penstock.kafka.client.transactions import group_metadata, member_in, metadata_of_member

NOWHERE = "127.0.0.1:1"


def test_it_is_written_as_the_installed_client_writes_it_of_itself() -> None:
    # That of a static consumer, which has not joined, differs from a member's in the member's id and generation alone.
    consumer = make_consumer(NOWHERE, "grüppe", settings={}, member={"group.instance.id": "till-1"})
    written = consumer.consumer_group_metadata()
    consumer.close()
    own = group_metadata(NOWHERE, "grüppe", settings={})
    member = metadata_of_member(own, "grüppe", "penstock-1", 7, static_id="till-1")
    assert member.replace(b"penstock-1", b"").replace((7).to_bytes(4, sys.byteorder), b"\xff" * 4) == written


def test_a_client_that_writes_it_in_another_form_is_found_out() -> None:
    own = group_metadata(NOWHERE, "shop", settings={})
    with pytest.raises(SetupError, match="in a form that Penstock does not know"):
        metadata_of_member(own.replace(b"v2", b"v3"), "shop", "m", 7, static_id=None)


@pytest.mark.parametrize(("member", "generation"), [("", 7), ("m", -1), ("", -1)])
def test_nobody_commits_as_nobody_because_the_broker_would_take_it(member: str, generation: int) -> None:
    own = group_metadata(NOWHERE, "shop", settings={})
    with pytest.raises(KafkaException) as caught:
        metadata_of_member(own, "shop", member, generation, static_id=None)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("static_id", [None, "till-1"])
def test_what_the_client_writes_of_itself_is_read_back(static_id: str | None) -> None:
    own = group_metadata(NOWHERE, "grüppe", settings={})
    written = metadata_of_member(own, "grüppe", "penstock-1", 7, static_id=static_id)
    assert member_in(written, "grüppe") == ("penstock-1", 7, static_id)
    assert member_in(own, "grüppe") is None
    for other in (None, b"", b"CGMDv3:" + written[7:], written + b"more", written[:-1], written.replace(b"gr", b"kr")):
        assert member_in(other, "grüppe") is None
