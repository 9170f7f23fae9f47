"""Translates Java's ``sasl.jaas.config`` into the settings of librdkafka."""

import re

from penstock.errors import ConfigError

_MODULE = re.compile(r"\s*([\w.]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*$", re.DOTALL)
_OPTION = re.compile(r"""([\w.\-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""")

_USER = {"username": "sasl.username", "password": "sasl.password"}
_OAUTH = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_KERBEROS = {
    "principal": "sasl.kerberos.principal",
    "keyTab": "sasl.kerberos.keytab",
    "serviceName": "sasl.kerberos.service.name",
}
_OPTIONS = {
    "PlainLoginModule": _USER,
    "ScramLoginModule": _USER,
    "OAuthBearerLoginModule": _OAUTH,
    "Krb5LoginModule": _KERBEROS,
}
_HINT = "Write sasl.username and sasl.password instead, or, for OAuth, sasl.oauthbearer.*."


def parse_jaas(config: object) -> dict[str, str]:
    """The login settings in a JAAS configuration. Errors never quote it, because it contains a password."""
    match = _MODULE.match(config) if isinstance(config, str) else None
    if match is None:
        raise ConfigError(
            "The setting 'sasl.jaas.config' is not of the form MODULE required OPTION=\"value\" ...;", hint=_HINT
        )
    module = match[1].rpartition(".")[2]
    names = _OPTIONS.get(module)
    if names is None:
        raise ConfigError(f"The login module {module!r} of sasl.jaas.config is not known here.", hint=_HINT)
    given = {option: _unquoted(value) for option, value in _OPTION.findall(match[2])}
    found = {names[option]: value for option, value in given.items() if option in names}
    if names is _USER and len(found) < len(_USER):
        missing = next(option for option in _USER if option not in given)
        raise ConfigError(f"sasl.jaas.config names no {missing}.", hint=_HINT)
    if names is _OAUTH and found:
        found["sasl.oauthbearer.method"] = "oidc"
    return found


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] in "\"'" else text
