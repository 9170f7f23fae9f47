"""A broker with a second listener, where clients log in and may do nothing but what they were allowed to."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from penstock.devkit import Embedded, UpOptions
from penstock.devkit import embedded as module
from penstock.devkit.broker_config import broker_settings
from penstock.devkit.ports import HOST, choose_port
from penstock.kafka import Cluster

ALLOW = AclPermissionType.ALLOW
PASSWORD = "known to all"
# One who may do nothing, one who may look at topics and groups, and one who may also read them.
NOBODY, LOOKER, READER = "nobody", "looker", "reader"


@contextmanager
def guarded_broker(home: Path) -> Iterator[tuple[str, str]]:
    """Gives two addresses of it: the one where everything is allowed, and the one for ``LOGIN``."""
    port = choose_port([], taken=set())

    def settings(*arguments: Any) -> dict[str, object]:
        known = broker_settings(*arguments)
        return {
            **known,
            "listeners": f"{known['listeners']},LOGIN://{HOST}:{port}",
            "advertised.listeners": f"{known['advertised.listeners']},LOGIN://{HOST}:{port}",
            "listener.security.protocol.map": f"{known['listener.security.protocol.map']},LOGIN:SASL_PLAINTEXT",
            "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                + " ".join(f'user_{user}="{PASSWORD}"' for user in (NOBODY, LOOKER, READER))
                + ";"
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # Whoever comes to the other listener, as the broker itself does, is known by this name.
            "super.users": "User:ANONYMOUS",
        }

    kafka = Embedded(home)
    try:
        # Only for this one: others may be started while it runs.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "broker_settings", settings)
            kafka.up(UpOptions(port=0))
        _allow(Cluster(str(kafka.bootstrap())))
        yield str(kafka.bootstrap()), f"{HOST}:{port}"
    finally:
        kafka.down()


def _allow(cluster: Cluster) -> None:
    wanted = [
        AclBinding(kind, "*", ResourcePatternType.LITERAL, f"User:{user}", "*", operation, ALLOW)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        for user, operation in ((LOOKER, AclOperation.DESCRIBE), (READER, AclOperation.READ))
    ]
    for future in cluster.admin.create_acls(wanted).values():
        future.result(timeout=30)


def login(user: str) -> list[str]:
    """The flags of a command that logs in."""
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
