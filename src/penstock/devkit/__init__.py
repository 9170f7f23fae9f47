"""A real Kafka on this machine, for development, demos and tests: ``penstock up | status | down``."""

from penstock.devkit.embedded import Embedded, Stopped, default_home, embedded_brokers, embedded_registry
from penstock.devkit.options import UpOptions
from penstock.devkit.status import BrokerStatus, RegistryStatus, ServerState, ServerStatus, Status

__all__ = [
    "BrokerStatus",
    "Embedded",
    "RegistryStatus",
    "ServerState",
    "ServerStatus",
    "Status",
    "Stopped",
    "UpOptions",
    "default_home",
    "embedded_brokers",
    "embedded_registry",
]
