"""Finds out why a broker that listens does not answer: TLS fails, only one side uses TLS, or the login is refused.

In all of these cases the client only reports that the broker is down. So this module makes a TLS handshake itself.
"""

import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from penstock.core.settings import client_settings
from penstock.errors import PenstockError, ServerError
from penstock.kafka.client.addresses import parse_brokers
from penstock.kafka.client.clients import LOG
from penstock.kafka.client.settings_by_client import admin_settings
from penstock.kafka.error_codes import LOGIN_REFUSED
from penstock.kafka.errors import translate

_CONNECT_SECONDS = 1.0
# A broker that requires a client certificate refuses its absence only after its side of the handshake is complete.
_CLIENT_CERTIFICATE_SECONDS = 0.3
_LOGIN_SECONDS = 2.0
# OpenSSL's codes of certificate errors.
_EXPIRED = (9, 10)
_OTHER_NAME = (62, 64)
# OpenSSL's errors if the other side does not use TLS.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_MESSAGE")
# This module does not read client certificates that are not in PEM files.
_OTHER_CERTIFICATES = ("ssl.certificate.pem", "ssl.key.pem", "ssl.keystore.location", "ssl.engine.location")

_PLAIN_HINT = "Use the port of its TLS listener, or set security.protocol=plaintext (with a login: sasl_plaintext)."
_TLS_HINT = (
    "Set security.protocol=ssl (with a login: sasl_ssl), and ssl.ca.location to the CA that signed its certificate."
)
_CLOCK_HINT = "Renew the broker's certificate, or check the clock of this machine."
_NAME_HINT = (
    "Connect with a host name that is in the certificate and in the broker's advertised.listeners, or issue a "
    "certificate for this name."
)
_TRUST_HINT = "Set ssl.ca.location to a PEM file with the CA that signed the certificate{now}."
_MISSING_HINT = "Set ssl.certificate.location and ssl.key.location (and ssl.key.password, if the key has one)."
_REFUSED_HINT = "Check that a CA that the broker trusts signed ssl.certificate.location, and that it has not expired."


def why_silent(brokers: str, settings: Mapping[str, Any]) -> PenstockError | None:
    """Return the reason why brokers that listen do not answer; None if no reason is found."""
    known = client_settings(settings)
    protocol = str(known.get("security.protocol", "plaintext")).lower()
    for host, port in parse_brokers(brokers):
        try:
            connection = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
        except OSError:
            continue  # another broker listens
        broker = f"broker at {host}:{port}"
        with connection:
            found = (
                _of_tls(connection, host, broker, known)
                if protocol.endswith("ssl")
                else _of_plaintext(connection, broker, protocol)
            )
        if found is not None:
            return found
    return _refused_login(brokers, settings) if protocol.startswith("sasl") else None


def _of_tls(connection: socket.socket, host: str, broker: str, settings: Mapping[str, Any]) -> ServerError | None:
    try:
        with _context(settings).wrap_socket(connection, server_hostname=host) as secure:
            return _of_client(broker, secure, settings)
    except ssl.SSLCertVerificationError as error:
        return _untrusted(broker, error, settings)
    except (ssl.SSLError, ConnectionError) as error:
        if _is_alert(error):
            return _client_refused(broker, settings)
        if isinstance(error, ssl.SSLEOFError | ConnectionError) or getattr(error, "reason", "") in _NOT_TLS:
            return ServerError(f"The {broker} does not use TLS.", hint=_PLAIN_HINT)
    except OSError:
        pass  # for example no answer in time, or a certificate file that only the client can read
    return None


def _is_alert(error: OSError) -> bool:
    """Return whether the other side uses TLS and has sent an alert."""
    return "ALERT" in str(getattr(error, "reason", ""))


def _context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if settings.get("enable.ssl.certificate.verification") is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    ca_file, text = settings.get("ssl.ca.location"), settings.get("ssl.ca.pem")
    if ca_file or text:
        context.load_verify_locations(ca_file, cadata=text)
    else:
        context.load_default_certs()
    if certificate := settings.get("ssl.certificate.location"):
        # Without a password argument, Python would ask for one in the terminal.
        password = str(settings.get("ssl.key.password", ""))
        context.load_cert_chain(certificate, settings.get("ssl.key.location"), password=password)
    return context


def _of_client(broker: str, secure: ssl.SSLSocket, settings: Mapping[str, Any]) -> ServerError | None:
    """Check whether the broker refuses this client after a handshake that succeeded on this side."""
    secure.settimeout(_CLIENT_CERTIFICATE_SECONDS)
    try:
        secure.recv(1)
    except TimeoutError:
        return None
    except (ssl.SSLError, ConnectionError):
        return _client_refused(broker, settings)
    return None


def _client_refused(broker: str, settings: Mapping[str, Any]) -> ServerError | None:
    if any(name in settings for name in _OTHER_CERTIFICATES):
        return None
    if "ssl.certificate.location" in settings:
        return ServerError(f"The {broker} does not accept the certificate of this client.", hint=_REFUSED_HINT)
    return ServerError(f"The {broker} requires a certificate of this client.", hint=_MISSING_HINT)


def _untrusted(broker: str, error: ssl.SSLCertVerificationError, settings: Mapping[str, Any]) -> ServerError:
    reason = error.verify_message.rstrip(".")
    if error.verify_code in _OTHER_NAME:
        return ServerError(f"The certificate of the {broker} was issued for another name: {reason}.", hint=_NAME_HINT)
    if error.verify_code in _EXPIRED:
        return ServerError(f"The certificate of the {broker} is not valid now: {reason}.", hint=_CLOCK_HINT)
    path = settings.get("ssl.ca.location")
    now = f"; {path} does not contain it" if path else ""
    return ServerError(f"The certificate of the {broker} is not trusted: {reason}.", hint=_TRUST_HINT.format(now=now))


def _of_plaintext(connection: socket.socket, broker: str, protocol: str) -> ServerError | None:
    """Check whether the broker expects TLS: then it answers with a certificate or an alert."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    problem = f"The {broker} uses TLS, but security.protocol is {protocol}."
    try:
        with context.wrap_socket(connection):
            return ServerError(problem, hint=_TLS_HINT)
    except ssl.SSLError as error:
        return ServerError(problem, hint=_TLS_HINT) if _is_alert(error) else None
    except OSError:
        return None


def _refused_login(brokers: str, settings: Mapping[str, Any]) -> PenstockError | None:
    """Return the login error that a temporary client reports. A client that has failed to log in stays unusable."""
    errors: list[KafkaError] = []
    config = {**admin_settings(settings), "bootstrap.servers": brokers, "error_cb": errors.append}
    try:
        client = AdminClient(config, logger=LOG)
        deadline = time.monotonic() + _LOGIN_SECONDS
        while time.monotonic() < deadline:
            client.poll(_CONNECT_SECONDS)
            for error in errors:
                if error.code() in LOGIN_REFUSED:
                    raise KafkaException(error)  # noqa: TRY301 - as a request of the client would raise it
    except KafkaException as error:
        return translate(error, doing="logging in", brokers=brokers, settings=settings)
    return None
