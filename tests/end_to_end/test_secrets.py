"""Secrets in a deployed stage, with IAM enforced: the key, what functions may do with it, a call, what is stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from common.storage import keys
from common.storage.table import Table
from common.timing.instants import rfc3339
from minute8_client import Client, Conflict
from scripts import newcomer
from scripts.embedded import Embedded
from tests.executor.servers import serving
from tests.waiting import wait_until

pytestmark = pytest.mark.embedded

ROOT = Path(__file__).resolve().parents[2]
VALUE = 'a "token"/of\\another+service'
# What a header takes.
TOKEN = "ghp_0123456789abcdef"


def minute8(environment: dict[str, str], *words: str, stdin: str = "") -> str:
    """What the command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words],
        cwd=ROOT,
        env=os.environ | environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_target_gets_the_value_and_nothing_else_has_it(embedded: Embedded, aws: Any) -> None:
    environment = newcomer.environment_of(embedded, "test")
    with serving(tls=False) as server:
        host = f"127.0.0.1:{server.port}"
        minute8(environment, "tenants", "create", "sven", "--allow-target", host)
        key = minute8(environment, "keys", "create", "sven", "--role", "write")
        for name, value in (("value", VALUE), ("token", TOKEN)):
            stored = minute8(environment | {"MINUTE8_KEY": key}, "secrets", "put", name, stdin=f"{value}\n")
            assert "revision 1" in stored
        answer = json.dumps({"refused": [VALUE, TOKEN]}).encode()
        server.reply = lambda handler: (401, {"x-request-id": TOKEN}, answer)
        with Client(environment["MINUTE8_URL"], key) as client:
            client.put_job(
                "report",
                {
                    "schedule": {"at": rfc3339(int(time.time()) + 3)},
                    "target": {
                        "kind": "http",
                        "url": f"http://{host}/secret://token",
                        "headers": {"authorization": "Bearer secret://token"},
                    },
                    "payload": {"of": "secret://value"},
                },
            )
            run = wait_until(
                lambda: next((run for run in client.runs("report") if run["status"] == "failed"), None),
                lambda: list(client.runs("report")),
            )
            (request,) = server.requests
            assert request.headers["authorization"] == f"Bearer {TOKEN}"
            assert (request.path, json.loads(request.body)["payload"]) == (f"/{TOKEN}", {"of": VALUE})
            (attempt,) = run["attempts"]
            assert attempt["error"] == "answered 401"
            assert attempt["log_tail"] == '{"refused": ["secret://value", "secret://token"]}'
            assert attempt["request_id"] == "secret://token"
            with pytest.raises(Conflict, match="report"):
                client.delete_secret("token")
            assert [secret["name"] for secret in client.secrets()] == ["token", "value"]
            client.delete_job("report")
    assert hidden_in(aws, "token", TOKEN) == hidden_in(aws, "value", VALUE) == []


def hidden_in(aws: Any, name: str, value: str) -> list[str]:
    """The tables and logs that have the value as it is."""
    dynamodb, logs = aws("dynamodb"), aws("logs")
    assert Table(dynamodb, "minute8-test-tenants").get(keys.secret("sven", name))
    texts = {
        table: json.dumps(dynamodb.scan(TableName=f"minute8-test-{table}")["Items"])
        for table in ("jobs", "due", "tenants", "audit", "runs")
    }
    for group in logs.describe_log_groups()["logGroups"]:
        events = logs.filter_log_events(logGroupName=group["logGroupName"])["events"]
        texts[group["logGroupName"]] = json.dumps(events)
    return [place for place, text in texts.items() if value in text or json.dumps(value)[1:-1] in text]


def test_no_function_encrypts_and_decrypts(aws: Any) -> None:
    """As the deployed policies say. The strict layer enforces them, so the test above needs what they allow."""
    iam = aws("iam")
    may = {}
    for role in iam.list_roles()["Roles"]:
        statements = [
            statement
            for policy in iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]
            for statement in iam.get_role_policy(RoleName=role["RoleName"], PolicyName=policy)[
                "PolicyDocument"
            ]["Statement"]
        ]
        if actions := [statement["Action"] for statement in statements if "kms:" in str(statement)]:
            may[role["RoleName"].split("-")[-1][:8].lower()] = actions
    assert sorted(may.values()) == [["kms:Decrypt"], ["kms:Encrypt"]]
    assert may["executor"] == ["kms:Decrypt"]
