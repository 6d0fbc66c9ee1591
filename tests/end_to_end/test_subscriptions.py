"""A subscription on the embedded AWS: a burst of failures is one signed message, and then comes the recovery."""

from __future__ import annotations

import base64
import hmac
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from common.timing.instants import rfc3339
from minute8.client import Client
from scripts import newcomer
from scripts.embedded import Embedded
from tests.executor.servers import ReceivedRequest, serving
from tests.waiting import wait_until

pytestmark = pytest.mark.embedded

ROOT = Path(__file__).resolve().parents[2]


def test_a_burst_is_one_signed_message_and_then_a_recovery(embedded: Embedded, aws: Any) -> None:
    environment = newcomer.environment_of(embedded, "test")

    def minute8(*words: str) -> str:
        command = [sys.executable, "-m", "minute8", *words]
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    with serving(tls=False) as server:
        host = f"127.0.0.1:{server.port}"
        minute8("tenants", "create", "nina", "--allow-target", host)
        with Client(
            environment["MINUTE8_URL"], minute8("keys", "create", "nina", "--role", "admin")
        ) as client:
            status = 503
            server.reply = lambda handler: (status if handler.path == "/job" else 204, {}, b"")
            client.put_subscription(
                "on-call", {"target": {"kind": "http", "url": f"http://{host}/"}, "delay_s": 3, "group_s": 0}
            )
            target = {"kind": "http", "url": f"http://{host}/job"}
            # Both are due at the same seconds, so that one message reports both.
            schedule = {"cron": "*/2 * * * * *", "start_at": rfc3339(int(time.time()) + 5)}
            for name in ("a", "b"):
                client.put_job(name, {"schedule": schedule, "target": target, "retry": {"max_attempts": 1}})
            first = wait_until(lambda: messages(aws, server.requests, 1), "no message")
            status = 204
            wait_until(lambda: all(is_well(client, name) for name in ("a", "b")), "a job still fails")
            both = wait_until(lambda: messages(aws, server.requests, 2), "no recovery")
            # Which of the two jobs ran first is not certain.
            texts = [json.loads(message.body)["text"].replace("(b, a)", "(a, b)") for message in both]
            assert texts == [
                "Minute8, nina: 2 jobs failed (a, b).",
                "Minute8, nina: 2 jobs recovered (a, b).",
            ]
            assert is_signed(client.get_webhook_secret(), first[0])
            assert client.get_subscription("on-call")["delivery"]["state"] == "working"
            for name in ("a", "b"):
                client.delete_job(name)
            client.delete_subscription("on-call")


def is_well(client: Client, job_id: str) -> bool:
    """Whether the newest run that has ended succeeded."""
    ended = (
        run["status"] for run in client.list_runs_of_job(job_id) if run["status"] in ("succeeded", "failed")
    )
    return next(ended, "") == "succeeded"


def messages(aws: Any, requests: list[ReceivedRequest], min_count: int) -> list[ReceivedRequest]:
    """The messages to the subscription, once there are so many; this does not wait for the rule of each minute."""
    aws("lambda").invoke(FunctionName="minute8-test-notifier", Qualifier="live", Payload=b"{}")
    received = [request for request in requests if request.path == "/"]
    return received if len(received) >= min_count else []


def is_signed(secret: str, request: ReceivedRequest) -> bool:
    signed = (
        f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    )
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return request.headers["webhook-signature"] == f"v1,{signature}"
