"""AWS clients in a Lambda: the roots that they trust, and what the init phase prepares."""

from __future__ import annotations

import ssl
from pathlib import Path

import botocore
import pytest

from common.storage import aws


def _certificates(path: Path) -> dict[bytes, str]:
    """The certificates of a bundle with the ends of their validity."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(path)
    ends = [str(certificate["notAfter"]) for certificate in context.get_ca_certs()]
    return dict(zip(context.get_ca_certs(binary_form=True), ends, strict=True))


def test_the_amazon_roots_are_those_that_botocore_trusts() -> None:
    kept, all_roots = (
        _certificates(aws.AMAZON_ROOTS),
        _certificates(Path(botocore.__file__).with_name("cacert.pem")),
    )
    amazons = {der for der in all_roots if b"Amazon Root CA" in der or b"Starfield Services Root" in der}
    assert set(kept) == amazons
    assert len(kept) == 5
    assert all(int(ends.split()[3]) >= 2037 for ends in kept.values())


@pytest.mark.parametrize(
    ("environment", "is_small"),
    [
        ({}, False),
        ({"AWS_LAMBDA_FUNCTION_NAME": "f"}, True),
        ({"AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_CA_BUNDLE": "/own.pem"}, False),
        ({"AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_REGION": "cn-north-1"}, False),
        ({"AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_REGION": "us-gov-west-1"}, False),
    ],
)
def test_only_functions_of_the_main_partition_trust_amazons_roots_alone(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], is_small: bool
) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    session = aws.target_client("sqs", "us-east-1", 5)._endpoint.http_session
    assert (session._verify == str(aws.AMAZON_ROOTS)) == is_small
