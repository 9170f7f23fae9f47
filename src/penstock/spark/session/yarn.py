"""Finds the addresses of YARN's resource managers in Hadoop's configuration files."""

import os
import re
from pathlib import Path
from xml.etree import ElementTree as ET

from penstock.errors import ConfigError

_SITE = "yarn-site.xml"
_PREFIX = "yarn.resourcemanager."
_ANY_HOST = "0.0.0.0"  # noqa: S104 - Hadoop's default
_PORT = 8032
_LAST_PORT = 65_535
_VARIABLE = re.compile(r"\$\{([^${}]+)\}")
_MOST_SUBSTITUTIONS = 20  # as in Hadoop


def resource_managers() -> list[tuple[str, int]]:
    """Return host and port of each resource manager; with high availability only one of them answers.

    Empty if no file names them: Spark's settings may do so (``spark.hadoop.yarn.resourcemanager.address``).
    """
    site = _site()
    if site is None:
        return []
    values = _read(site)
    ids = _value(values, f"{_PREFIX}ha.rm-ids") if _value(values, f"{_PREFIX}ha.enabled") == "true" else ""
    found = []
    for suffix in [f".{each.strip()}" for each in ids.split(",")] if ids else [""]:
        named = _value(values, f"{_PREFIX}address{suffix}")
        host, _, port = (named or _value(values, f"{_PREFIX}hostname{suffix}") or _ANY_HOST).partition(":")
        if not re.fullmatch(r"\d{0,5}", port) or int(port or _PORT) > _LAST_PORT:
            raise ConfigError(
                f"{site} has {named!r} as the address of a resource manager.", hint="Write it as HOST:PORT."
            )
        found.append((host, int(port or _PORT)))
    return found


def _site() -> Path | None:
    folders = [os.environ[name] for name in ("YARN_CONF_DIR", "HADOOP_CONF_DIR") if os.environ.get(name)]
    if not folders:
        raise ConfigError(
            "The address of YARN is unknown.", hint=f"Set HADOOP_CONF_DIR to the folder that holds {_SITE}."
        )
    return next((path for folder in folders if (path := Path(folder, _SITE)).is_file()), None)


def _read(site: Path) -> dict[str, str]:
    try:
        properties = ET.parse(site).getroot().iter("property")  # noqa: S314 - the user's own file
        return {each.findtext("name", "").strip(): each.findtext("value", "").strip() for each in properties}
    except (OSError, ET.ParseError) as error:
        raise ConfigError(
            f"{site} cannot be read: {error}.", hint="Fix the file, or set HADOOP_CONF_DIR to another folder."
        ) from error


def _value(values: dict[str, str], name: str) -> str:
    """Return the value, with the ``${...}`` of other settings replaced."""
    value = values.get(name, "")
    for _ in range(_MOST_SUBSTITUTIONS):
        found = _VARIABLE.search(value)
        if found is None or found[1] not in values:
            break
        value = value.replace(found[0], values[found[1]])
    return value
