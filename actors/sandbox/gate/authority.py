"""The certificate authority of one sandbox: with it the proxy ends TLS for hosts that a secret is granted for.

Its key stays with the host, in a file beside the sandbox's folders; programs inside trust its certificate, and nobody
else in the world does. It lives as long as the sandbox, so that what trusts it goes on to after a restart of the host.
"""

import datetime
import os
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

YEARS = 10
NAME = "Frontdesk, for this sandbox alone"


class Authority:
    """Made by `kept`. Use it in one thread."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key, self._certificate = key, certificate
        self._contexts: dict[str, ssl.SSLContext] = {}

    @property
    def certificate(self) -> bytes:
        """What is to be trusted, as PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def serving(self, host: str) -> ssl.SSLContext:
        """For the side of TLS that says it is `host`."""
        if host not in self._contexts:
            self._contexts[host] = _context(*self._issued(host))
        return self._contexts[host]

    def _issued(self, host: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(x509.Name([]), self._certificate.subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=True)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signing=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        return key, builder.sign(self._key, hashes.SHA256())


def kept(file: Path) -> Authority:
    """The one whose key is in that file, or a new one whose key is then there, for its owner only."""
    try:
        text = file.read_bytes()
        key = serialization.load_pem_private_key(text, None)
        certificate = x509.load_pem_x509_certificate(text)
        if isinstance(key, ec.EllipticCurvePrivateKey):
            certificate.verify_directly_issued_by(certificate)
            return Authority(key, certificate)
    except (FileNotFoundError, ValueError, TypeError, InvalidSignature):
        pass  # the first time, or what a crash has left
    key, certificate = _made()
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(_pem(key) + certificate.public_bytes(serialization.Encoding.PEM))
    fresh.replace(file)
    return Authority(key, certificate)


def _made() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    builder = (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signing=False), critical=True)
    )
    return key, builder.sign(key, hashes.SHA256())


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365 * YEARS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signing: bool) -> x509.KeyUsage:
    """Of a server, which signs its handshake, or of an authority, which signs certificates."""
    return x509.KeyUsage(
        digital_signature=signing,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=not signing,
        crl_sign=not signing,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _context(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    memory = os.memfd_create("certificate")  # the module ssl takes files only
    try:
        os.write(memory, _pem(key) + certificate.public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(f"/proc/self/fd/{memory}")
    finally:
        os.close(memory)
    return context
