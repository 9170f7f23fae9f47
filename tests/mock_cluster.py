"""The mock cluster of librdkafka: a broker in this process that answers as a test wants."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka

PRODUCE = 0
"""The API key of Kafka's Produce request."""

_PRODUCER = 0
_ERROR_BYTES = 512


def client_library() -> Path | None:
    """The librdkafka in the wheel of confluent-kafka; None if the wheel links it in another way."""
    found = Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka*")
    return next(found, None)


class MockCluster:
    def __init__(self, library: Any, cluster: ctypes.c_void_p) -> None:
        self._library, self._cluster = library, cluster
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        self.brokers = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()

    def create_topic(self, name: str, *, partitions: int = 1) -> None:
        assert self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1) == 0

    def refuse(self, request: int, *codes: int) -> None:
        """Answer the next requests of this kind with these errors, one each."""
        errors = (ctypes.c_int * len(codes))(*codes)
        push = self._library.rd_kafka_mock_push_request_errors_array
        push(self._cluster, ctypes.c_int16(request), ctypes.c_size_t(len(codes)), errors)

    def answer_after(self, milliseconds: int) -> None:
        assert self._library.rd_kafka_mock_broker_set_rtt(self._cluster, 1, milliseconds) == 0


@contextmanager
def mock_cluster() -> Iterator[MockCluster]:
    library = ctypes.CDLL(str(client_library()))
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(library, name).restype = ctypes.c_void_p
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    conf = ctypes.c_void_p(library.rd_kafka_conf_new())
    client = ctypes.c_void_p(library.rd_kafka_new(_PRODUCER, conf, error, ctypes.c_size_t(_ERROR_BYTES)))
    assert client.value, error.value
    cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(client, 1))
    try:
        yield MockCluster(library, cluster)
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)
