"""Whom programs in a sandbox trust: as the host does, and the authority of their own proxy, in one file of PEM."""

import os
import ssl
from pathlib import Path

BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT")


def write(file: Path, authority: bytes) -> None:
    """Replaces it as a whole; anyone may read it."""
    fresh = file.with_suffix(".new")
    fresh.write_bytes(_roots() + b"\n" + authority)
    fresh.chmod(0o644)
    fresh.replace(file)


def _roots() -> bytes:
    """Those of the host's own programs; none where it has none."""
    known = (ssl.get_default_verify_paths().cafile, *BUNDLES)
    found = next((path for path in known if path and os.path.isfile(path)), None)
    return Path(found).read_bytes() if found else b""
