"""Whom programs in a sandbox trust: as the host does, and the authority of their own proxy, in one file of PEM."""

import os
import ssl
from pathlib import Path

import certifi

BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT")


def write(file: Path, authority: bytes) -> None:
    """Replaces it as a whole; anyone may read it."""
    fresh = file.with_suffix(".new")
    fresh.write_bytes(Path(roots()).read_bytes() + b"\n" + authority)
    fresh.chmod(0o644)
    fresh.replace(file)


def roots() -> str:
    """The file of those that the host's own programs trust; Mozilla's list where the machine has none."""
    known = (ssl.get_default_verify_paths().cafile, *BUNDLES)
    return next((path for path in known if path and os.path.isfile(path)), None) or certifi.where()
