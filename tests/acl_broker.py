"""A broker with a second listener, where clients log in and ACLs limit what they may do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from more_listeners import addresses, broker_with
from penstock.kafka import Cluster

ALLOW = AclPermissionType.ALLOW
PASSWORD = "known to all"
# Logins without permissions, with DESCRIBE on topics and groups, and also with READ.
NOBODY, LOOKER, READER = "nobody", "looker", "reader"


@contextmanager
def broker_with_acls(home: Path) -> Iterator[tuple[str, str]]:
    """Start the broker; yields the address that allows everything, and the address of the listener ``LOGIN``."""
    listeners = addresses("LOGIN")
    users = " ".join(f'user_{user}="{PASSWORD}"' for user in (NOBODY, LOOKER, READER))
    more = {
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Clients of the other listener, the broker itself too, have this name.
        "super.users": "User:ANONYMOUS",
    }
    with broker_with(home, listeners, {"LOGIN": "SASL_PLAINTEXT"}, more) as kafka:
        _allow(Cluster(str(kafka.bootstrap())))
        yield str(kafka.bootstrap()), listeners["LOGIN"]


def _allow(cluster: Cluster) -> None:
    wanted = [
        AclBinding(kind, "*", ResourcePatternType.LITERAL, f"User:{user}", "*", operation, ALLOW)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        for user, operation in ((LOOKER, AclOperation.DESCRIBE), (READER, AclOperation.READ))
    ]
    for future in cluster.admin.create_acls(wanted).values():
        future.result(timeout=240)


def login(user: str) -> list[str]:
    """The flags with which a command logs in."""
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
