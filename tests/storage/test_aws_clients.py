"""AWS clients in a Lambda: the roots that they trust, and what the init phase prepares."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ReadTimeoutError

from common.storage import aws


class _Body(BytesIO):
    def stream(self) -> Any:
        yield self.read()


def _certificates(path: Path) -> dict[bytes, str]:
    """The certificates of a bundle, each with the end of its validity."""
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
    assert session._verify == aws._trusted_roots()  # direct requests trust the same


def test_a_client_waits_as_long_as_the_thread_last_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore reads the time limit from the request's context, which it does not document."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        client = aws.target_client("sqs", "us-east-1", 60)
        aws.set_read_timeout(0.05)
        try:
            with pytest.raises(ReadTimeoutError):
                client.list_queues()
        finally:
            aws.set_read_timeout(60)


@pytest.mark.parametrize(("client", "is_passed_on"), [(aws.sqs, False), (aws.events, True)])
def test_messages_to_our_own_queues_begin_a_chain_of_their_own(
    monkeypatch: pytest.MonkeyPatch, client: Any, is_passed_on: bool
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-0-0;Lineage=1:a:7")
    headers: dict[str, str] = {}

    def answer(request: Any, **_: object) -> AWSResponse:
        headers.update(request.headers.items())
        return AWSResponse(request.url, 200, {}, _Body(b"{}"))

    built_client = client.__wrapped__()
    built_client.meta.events.register("before-send", answer)
    built_client.list_rules() if is_passed_on else built_client.list_queues()
    assert ("X-Amzn-Trace-Id" in headers) == is_passed_on


@pytest.mark.parametrize(
    ("handler", "built"),
    [
        ("minute8.api.handler", "_services"),
        ("scheduler.handler", "scheduler"),
        ("executor.completion", "_outcomes"),
    ],
)
def test_a_function_builds_its_clients_in_its_init_phase(handler: str, built: str) -> None:
    """Nothing listens at the endpoint: a connection that fails there fails no function."""
    code = f"import {handler} as h; from common.storage import aws; print(h.{built}.cache_info().currsize)"
    code += "; print(aws.dynamodb.cache_info().currsize)"
    names = ("JOBS_TABLE", "DUE_TABLE", "TENANTS_TABLE", "RUNS_TABLE", "EVENT_BUS", "EXECUTIONS_QUEUE_URL")
    environment = {**dict.fromkeys(names, "any"), "AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_REGION": "us-east-1"}
    environment |= {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "PATH": os.defpath}
    environment |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["1", "1"], done.stderr
