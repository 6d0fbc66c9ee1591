"""Secrets in a deployed stage, with IAM enforced: the key, what functions may do with it, a call, what is stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3
import pytest

from common.errors import Busy
from common.storage import keys
from common.storage.table import Table
from common.tenants.secrets import SECRET, SecretKey
from common.tenants.webhook_secrets import ENCRYPTED, KIND, NAME, signature
from common.timing.instants import rfc3339
from minute8.cli.doctor.inventory import FUNCTIONS
from minute8.client import Client, Conflict
from scripts import newcomer
from scripts.embedded import Embedded
from scripts.embedded.as_account import credentials
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
        [sys.executable, "-m", "minute8", *words],
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
                lambda: next(
                    (run for run in client.list_runs_of_job("report") if run["status"] == "failed"), None
                ),
                lambda: list(client.list_runs_of_job("report")),
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
            assert [secret["name"] for secret in client.list_secrets()] == ["token", "value"]
            client.delete_job("report")
        admin = minute8(environment, "keys", "create", "sven", "--role", "admin")
        with Client(environment["MINUTE8_URL"], admin) as client:
            signing = client.get_webhook_secret()
            signed = request.headers["webhook-id"], int(request.headers["webhook-timestamp"]), request.body
            assert request.headers["webhook-signature"] == signature([signing], *signed)
            assert signing != client.rotate_webhook_secret() == client.get_webhook_secret()
    stored = Table(aws("dynamodb"), "minute8-test-tenants").get(keys.webhook_secret("sven")) or {}
    assert stored["secret"].startswith(ENCRYPTED) and stored["previous"].startswith(ENCRYPTED)
    assert showing(aws, TOKEN) == showing(aws, VALUE) == showing(aws, signing) == []


def showing(aws: Any, value: str) -> list[str]:
    """The tables and logs that have the value as it is."""
    dynamodb, logs = aws("dynamodb"), aws("logs")
    texts = {
        table: json.dumps(dynamodb.scan(TableName=f"minute8-test-{table}")["Items"])
        for table in ("jobs", "due", "tenants", "audit", "runs")
    }
    for group in logs.describe_log_groups()["logGroups"]:
        events = logs.filter_log_events(logGroupName=group["logGroupName"])["events"]
        texts[group["logGroupName"]] = json.dumps(events)
    return [place for place, text in texts.items() if value in text or json.dumps(value)[1:-1] in text]


def kms_policies(aws: Any) -> dict[str, list[Any]]:
    """Of each function's role that may use KMS the statements that say so."""
    iam = aws("iam")
    may: dict[str, list[Any]] = {}
    for role in iam.list_roles()["Roles"]:
        name = role["RoleName"]
        for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
            document = iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
            if of_kms := [statement for statement in document["Statement"] if "kms:" in str(statement)]:
                (function,) = (each for each in FUNCTIONS if each in name.lower())
                may.setdefault(function, []).extend(of_kms)
    return may


def test_no_function_encrypts_and_decrypts_tenants_secrets(aws: Any) -> None:
    """As the deployed policies say. The strict layer enforces them, so the tests above need what they allow."""
    of_webhooks = {"StringEquals": {"kms:EncryptionContext:use": "webhook-signature"}}
    may = {
        name: sorted(
            ((statement["Action"], statement.get("Condition")) for statement in statements),
            key=lambda pair: str(pair[0]),
        )
        for name, statements in kms_policies(aws).items()
    }
    assert may == {
        "api": [("kms:Decrypt", of_webhooks), ("kms:Encrypt", None)],
        "executor": [("kms:Decrypt", None)],
        "notifier": [("kms:Decrypt", of_webhooks)],
    }


def test_who_has_the_rights_of_the_api_decrypts_no_tenants_secret(
    embedded: Embedded, aws: Any, tmp_path: Path
) -> None:
    """A user gets the deployed statements."""
    statements = kms_policies(aws)["api"]
    policy = tmp_path / "rights-of-the-api.json"
    policy.write_text(json.dumps({"Version": "2012-10-17", "Statement": statements}))
    access = credentials(embedded, "intruder", [policy])
    kms = boto3.client(
        "kms",
        endpoint_url=embedded.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=access["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=access["AWS_SECRET_ACCESS_KEY"],
    )
    key = SecretKey(kms, statements[0]["Resource"])
    stored = wait_until(lambda: encrypted(key, "token", SECRET), "it may encrypt nothing")
    signing = wait_until(lambda: encrypted(key, NAME, KIND), "it may encrypt nothing")
    assert key.decrypted("sven", NAME, signing, KIND) == VALUE
    with pytest.raises(Busy, match="AccessDenied"):
        key.decrypted("sven", "token", stored)
    with pytest.raises(Busy, match="InvalidCiphertext"):  # the context that the policy allows
        key.decrypted("sven", NAME, stored, KIND)


def encrypted(key: SecretKey, name: str, kind: str) -> str:
    """VALUE as a text of this kind; empty while IAM does not know the new user's rights yet."""
    try:
        return key.encrypted("sven", name, VALUE, kind)
    except Busy:
        return ""
