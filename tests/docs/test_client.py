"""The Python examples of docs/client.md run, and so does the program that it names."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.version import VERSION
from examples.job_per_customer import register_all
from minute8 import client as http_client
from minute8 import direct
from minute8.client import AsyncClient, Client
from tests.api.calls import AsyncHandlerTransport, HandlerTransport
from tests.api.conftest import open_office
from tests.worlds import ARN, World

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.fixture
def minute8(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    key = open_office(world, monkeypatch).alice.key
    return Client("https://api.test", key or "", transport=HandlerTransport())


def test_the_documents_examples_run(
    minute8: Client, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(http_client, "Client", lambda url, key: minute8)
    monkeypatch.setattr(minute8, "close", lambda: None)
    first, _, without_http, second = EXAMPLES
    exec(first, {})
    assert [job["job_id"] for job in minute8.list_jobs()] == ["report-acme", "report-globex"]
    exec(second, {})
    assert minute8.get_job("report-acme")["timeout_s"] == 60
    minute8.delete_job("report-acme")
    exec(second, {})
    assert "report-acme" in capsys.readouterr().out
    minute8.put_job("report-acme", definition())
    monkeypatch.setattr(direct, "Client", lambda session, tenant, **more: minute8)
    monkeypatch.setattr("boto3.Session", object)
    monkeypatch.setitem(sys.modules, "minute8", SimpleNamespace(direct=direct))
    exec(without_http, {})
    assert capsys.readouterr().out == "paused\n"


def test_the_asynchronous_example_runs(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = open_office(world, monkeypatch).alice.key or ""
    transport = AsyncHandlerTransport()
    for name in ("acme", "globex"):
        Client("https://api.test", key, transport=transport.handler).put_job(f"report-{name}", definition())
    monkeypatch.setattr(http_client, "AsyncClient", lambda url, _: AsyncClient(url, key, transport=transport))
    exec(EXAMPLES[1], {})
    assert capsys.readouterr().out == "report-acme active\nreport-globex active\n"


def test_the_document_names_every_exception() -> None:
    exceptions = {
        name
        for name, value in vars(http_client).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert exceptions == set(re.findall(r"`([A-Z]\w+)`", DOCUMENT)) & exceptions


def customers(*ids: str, **zones: str) -> list[dict[str, str]]:
    return [{"id": customer, "timezone": zones.get(customer, "Europe/Paris")} for customer in ids]


def test_a_platform_registers_a_job_per_customer(minute8: Client) -> None:
    assert register_all(minute8, customers("acme", "globex", globex="Asia/Tokyo"), ARN) == []
    jobs = {job["job_id"]: job for job in minute8.list_jobs()}
    assert jobs["report-globex"]["schedule"]["timezone"] == "Asia/Tokyo"
    assert jobs["report-acme"]["payload"] == {"customer": "acme"}


def test_registering_again_changes_what_has_changed(minute8: Client) -> None:
    minute8.put_job("something-else", definition())
    register_all(minute8, customers("acme", "globex", "initech"), ARN)
    refused = register_all(
        minute8, customers("acme", "globex", "umbrella", globex="Asia/Tokyo", umbrella="Mars"), ARN
    )
    assert len(refused) == 1 and refused[0].startswith("umbrella: ") and "Mars" in refused[0]
    # These change with a job's times. If the times stay, queued executions stay too.
    revisions = {job["job_id"]: job["schedule_revision"] for job in minute8.list_jobs()}
    assert revisions == {"report-acme": 1, "report-globex": 2, "something-else": 1}


def definition() -> dict[str, Any]:
    return {"schedule": {"every": "1h"}, "target": {"kind": "lambda", "arn": ARN}}


def test_the_typescript_client_has_the_version_of_minute8() -> None:
    package = Path(__file__).resolve().parents[2] / "clients" / "typescript" / "package.json"
    assert json.loads(package.read_text())["version"] == VERSION
