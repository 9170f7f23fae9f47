"""A real Kafka on this machine, for development, demos and tests: ``penstock up | status | down``."""

from penstock.devkit.cluster_status import BrokerStatus, ClusterStatus, RegistryStatus, ServerState, ServerStatus
from penstock.devkit.embedded import Embedded, StoppedServers, embedded_brokers, embedded_registry
from penstock.devkit.up_options import UpOptions
from penstock.paths import embedded_home as default_home

__all__ = [
    "BrokerStatus",
    "ClusterStatus",
    "Embedded",
    "RegistryStatus",
    "ServerState",
    "ServerStatus",
    "StoppedServers",
    "UpOptions",
    "default_home",
    "embedded_brokers",
    "embedded_registry",
]
