"""librdkafka's private byte format of group metadata, which its transactions need. Only this file reads or writes it.

Nothing promises this format, so no function relies on the version alone: ``member_metadata`` compares what the client
has just written with what this file would write, and the readers return None for bytes that they do not know.
"""

import struct

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from penstock.errors import SetupError
from penstock.kafka.error_codes import Code

TESTED_LIBRDKAFKA = "2.16.0"

_FORMAT = b"CGMDv2:"
_GENERATION = struct.Struct("=i")
_NO_GENERATION = -1


def member_metadata(own: bytes, group: str, member_id: str, generation: int, *, static_id: str | None) -> bytes:
    """Return the group metadata that the client would write if it were this member.

    ``own`` is the metadata that the client has just written for itself, as a client that is not a member. Raise
    SetupError if it differs from what this file would write: then the format is unknown.
    """
    if own != _write(group, "", _NO_GENERATION, None):
        raise SetupError(
            f"librdkafka {confluent_kafka.libversion()[0]} is installed and writes group metadata in a format that "
            f"Penstock does not know. Penstock is tested with librdkafka {TESTED_LIBRDKAFKA}.",
            hint=f"Run pip install confluent-kafka=={TESTED_LIBRDKAFKA}, or use "
            'assignor="cooperative-sticky", "range" or "roundrobin" with delivery="exactly-once".',
        )
    if not member_id or generation == _NO_GENERATION:
        # Brokers do not fence offset commits that carry generation -1.
        raise KafkaException(KafkaError(Code.UNKNOWN_MEMBER_ID))
    return _write(group, member_id, generation, static_id)


def generation_in(metadata: bytes | None) -> int | None:
    """Return the generation in the client's metadata; None if it is not a member, or the format is unknown."""
    if metadata is None or not metadata.startswith(_FORMAT):
        return None
    (generation,) = _GENERATION.unpack_from(metadata, len(_FORMAT))
    return None if generation == _NO_GENERATION else int(generation)


def member_in(metadata: bytes | None, group: str) -> tuple[str, int, str | None] | None:
    """Return member id, generation and static id in the client's metadata.

    None if the client is not a member, or the format is unknown: the values, written again, must give the same bytes.
    """
    generation = generation_in(metadata)
    if metadata is None or generation is None:
        return None
    names = metadata[len(_FORMAT) + _GENERATION.size :].decode(errors="replace").split("\0")
    _, member_id, *rest = [*names, ""]
    static_id = rest[1] if rest[:1] == [""] and len(rest) > 1 else None
    known = bool(member_id) and _write(group, member_id, generation, static_id) == metadata
    return (member_id, generation, static_id) if known else None


def _write(group: str, member_id: str, generation: int, static_id: str | None) -> bytes:
    names = f"{group}\0{member_id}\0" + ("\1" if static_id is None else f"\0{static_id}\0")
    return _FORMAT + _GENERATION.pack(generation) + names.encode()
