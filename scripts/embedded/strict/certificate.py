"""A certificate for this machine, signed by an authority of its own, for TLS on loopback addresses."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from common.storage.aws import AMAZON_ROOTS

_VALID = datetime.timedelta(days=30)


def make(directory: Path) -> tuple[Path, ssl.SSLContext]:
    """A bundle to trust (AWS_CA_BUNDLE), and the server's side."""
    bundle, server = write(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    return bundle, context


def write(directory: Path) -> tuple[Path, Path]:
    """Write a bundle to trust, and the server's key with its certificate.

    The bundle holds Amazon's roots too, so that reading it costs what a function's own bundle does. RSA, as AWS has it.
    """
    authority_key, key = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    authority_name, name = _name("Minute8's strict layer"), _name("localhost")
    authority = _certificate(
        authority_name, authority_name, authority_key.public_key(), authority_key, ca=True
    )
    own = _certificate(name, authority_name, key.public_key(), authority_key, ca=False)
    bundle, server = directory / "authorities.pem", directory / "server.pem"
    bundle.write_bytes(AMAZON_ROOTS.read_bytes() + authority.public_bytes(serialization.Encoding.PEM))
    server.touch(mode=0o600)
    server.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + own.public_bytes(serialization.Encoding.PEM)
    )
    return bundle, server


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, ca: bool) -> x509.KeyUsage:
    """What Python's strict verification asks of an authority."""
    unused = ("content_commitment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only")
    signs = {"key_cert_sign": ca, "crl_sign": ca, "digital_signature": not ca, "key_encipherment": not ca}
    return x509.KeyUsage(**signs, **dict.fromkeys(unused, False))


def _certificate(
    subject: x509.Name, issuer: x509.Name, public_key: Any, signing_key: rsa.RSAPrivateKey, *, ca: bool
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(_usage(ca=ca), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(authority_key, critical=False)
        .sign(signing_key, hashes.SHA256())
    )
