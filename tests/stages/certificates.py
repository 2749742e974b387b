"""Certificates for servers of the tests, made with the openssl program."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


def self_signed(folder: Path, *names: str) -> tuple[ssl.SSLContext, str]:
    """A certificate for `names`: the server's context, and the file a client would trust it by."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl program is needed to make a certificate")
    key, cert = folder / "self-key.pem", folder / "self-cert.pem"
    command = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout {key}"
    kinds = [f"{'IP' if name[0].isdigit() else 'DNS'}:{name}" for name in names]
    subject = ["-subj", f"/CN={names[0]}", "-addext", f"subjectAltName={','.join(kinds)}"]
    subprocess.run([*command.split(), "-out", str(cert), *subject], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, str(cert)
