"""Certificates of a test CA, and servers that use them: a broker, and TLS in front of a schema registry."""

import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from more_listeners import addresses, broker_with
from penstock.devkit.ports import HOST

KEY_PASSWORD = "opens the key"
USER, LOGIN_PASSWORD = "ann", "known to ann"
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority. Clients that trust ``certificate`` trust all certificates that it signs."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        usage = x509.KeyUsage(*(each in (5, 6) for each in range(9)))  # may sign certificates and revocation lists
        built = _builder(self._name, self._name, self._key, signer=self._key).add_extension(basic, critical=True)
        signed = built.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(signed.public_bytes(Encoding.PEM))

    def sign(self, name: str, *, host: str = HOST, password: str | None = None, days: int = 1) -> Identity:
        """Sign a certificate for ``host`` that is valid for this many days. A password encrypts the key's file."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_address(host)])
        built = _builder(_name(name), self._name, key, signer=self._key, days=days)
        signed = built.add_extension(names, critical=False)
        identity = Identity(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        identity.certificate.write_bytes(signed.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        identity.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password)))
        return identity


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    signer: ec.EllipticCurvePrivateKey,
    days: int = 1,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    # Since version 3.13, Python requires that a certificate identifies its own key and the key that signed it.
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 9 * _DAY)
        .not_valid_after(now + days * _DAY)
        .add_extension(own, critical=False)
        .add_extension(authority, critical=False)
    )


def _address(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _encryption(password: str | None) -> KeySerializationEncryption:
    return NoEncryption() if password is None else BestAvailableEncryption(password.encode())


@dataclass(frozen=True)
class SecureBroker:
    """Its addresses: without TLS, with TLS, with client certificates, with a login, and two with wrong certificates."""

    plain: str
    tls: str
    mutual: str
    login: str
    misnamed: str
    expired: str
    authority: Authority
    client: Identity

    def by_tls(self) -> dict[str, Any]:
        """Settings of a client."""
        return {"security.protocol": "ssl", "ssl.ca.location": str(self.authority.certificate)}

    def by_certificate(self) -> dict[str, Any]:
        return {
            **self.by_tls(),
            "ssl.certificate.location": str(self.client.certificate),
            "ssl.key.location": str(self.client.key),
            "ssl.key.password": KEY_PASSWORD,
        }

    def by_login(self) -> dict[str, Any]:
        login = {"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": LOGIN_PASSWORD}
        return {**self.by_tls(), "security.protocol": "sasl_ssl", **login}


@contextmanager
def secure_broker(home: Path) -> Iterator[SecureBroker]:
    authority = Authority(home)
    server, misnamed = authority.sign("broker"), authority.sign("elsewhere", host="kafka.example")
    expired = authority.sign("yesterday", days=-1)
    listeners = addresses("TLS", "MUTUAL", "LOGIN", "MISNAMED", "EXPIRED")
    protocols = {**dict.fromkeys(listeners, "SSL"), "LOGIN": "SASL_SSL"}
    more = {
        **_store("tls", server),
        **_store("mutual", server),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.truststore.location": authority.certificate,
        **_store("login", server),
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{LOGIN_PASSWORD}";'
        ),
        **_store("misnamed", misnamed),
        **_store("expired", expired),
    }
    with broker_with(home, listeners, protocols, more) as kafka:
        yield SecureBroker(
            plain=str(kafka.bootstrap()),
            **{name.lower(): address for name, address in listeners.items()},
            authority=authority,
            client=authority.sign("client", password=KEY_PASSWORD),
        )


def _store(listener: str, identity: Identity) -> dict[str, object]:
    """Java reads certificate and key from one file."""
    both = identity.key.with_suffix(".both.pem")
    both.write_bytes(identity.key.read_bytes() + identity.certificate.read_bytes())
    prefix = f"listener.name.{listener}.ssl.keystore"
    return {f"{prefix}.type": "PEM", f"{prefix}.location": both}


class _Door(BaseHTTPRequestHandler):
    """Requires the login."""

    server: "_Gate"
    protocol_version = "HTTP/1.1"

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != self.server.login:
            self._answer(HTTPStatus.UNAUTHORIZED, b'{"error_code": 401, "message": "who are you?"}')
            return
        inner = HTTPConnection(self.server.behind)
        try:
            kinds = {name: self.headers[name] for name in ("Accept", "Content-Type") if name in self.headers}
            inner.request(self.command, self.path, body or None, kinds)
            answer = inner.getresponse()
            self._answer(answer.status, answer.read())
        finally:
            inner.close()

    do_GET = do_POST = _pass  # noqa: N815 - named by the library

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Gate(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, behind: str, user_info: str) -> None:
        super().__init__((HOST, 0), _Door)
        self.behind = behind
        self.login = f"Basic {b64encode(user_info.encode()).decode()}"

    def handle_error(self, *_: object) -> None:
        """The handshake fails if one side does not trust the other."""


@contextmanager
def tls_in_front_of(url: str, authority: Authority, *, user_info: str) -> Iterator[str]:
    """Put TLS in front of the server, with a client certificate and a login; yields the URL."""
    identity = authority.sign("front")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.certificate)
    inner = urlsplit(url)
    with _Gate(inner.netloc, user_info) as gate:
        gate.socket = context.wrap_socket(gate.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=gate.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"https://{HOST}:{gate.server_port}{inner.path}"
        finally:
            gate.shutdown()
            thread.join()
