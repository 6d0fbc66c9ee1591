"""What a stored job's owner is warned of: credentials in plain text, and schedules that have nothing left."""

from __future__ import annotations

from typing import Any

import pytest

from common.registration.job_warnings import job_warnings
from tests.worlds import World, job

URL = "https://example.com/hook"


def http(url: str = URL, **headers: str) -> dict[str, Any]:
    return {"kind": "http", "url": url, "headers": headers}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"target": http(authorization="Bearer abcdef")}, "The target has a value named authorization"),
        ({"payload": "https://me:pass1234@example.com/"}, "a password in a URL"),
        ({"payload": {"key": "sk-abcdefghijklmnop1234"}}, "sk-"),
        ({"payload": ["AKIAIOSFODNN7EXAMPLE"]}, "an access key of AWS"),
        ({"target": http(url="https://example.com/AKIAIOSFODNN7EXAMPLE")}, "an access key of AWS"),
        ({"target": http(number="sk-abcdefghijklmnop1234")}, "sk-"),
        (
            {"schedule": {"schedules": [{"every": 60, "payload_patch": {"key": "AKIAIOSFODNN7EXAMPLE"}}]}},
            "The schedule has an access key of AWS",
        ),
        ({"target": http(**{"X-Auth-Token": "abc"})}, "The target has a value named X-Auth-Token"),
        ({"target": http(**{"api-key": "abc"})}, "The target has a value named api-key"),
        (
            {"target": http(url="https://example.com/?a=1&access_token=abc")},
            "The target has a credential in a URL",
        ),
        ({"target": http(url="https://example.com/?key=abc")}, "The target has a credential in a URL"),
        ({"payload": {"auth": "Bearer eyJ0eXAi"}}, "The payload has a bearer token"),
        ({"name": "calls with sk-abcdefghijklmnop1234"}, "The name has"),
        ({"owner": "me AKIAIOSFODNN7EXAMPLE"}, "The owner has"),
        ({"runbook": "https://ops:hunter3@wiki.example.com/x"}, "The runbook has a password"),
        ({"payload": {"db": [{"password": "hunter"}]}}, "The payload has a value named password"),
        ({"payload": {"apiKey": "abc"}}, "The payload has a value named apiKey"),
        ({"payload": {"CLIENT_SECRET": "a b"}}, "The payload has a value named CLIENT_SECRET"),
        ({"payload": {"db_passwd": "x"}}, "The payload has a value named db_passwd"),
        ({"payload": {"slack.token": "x"}}, "The payload has a value named slack.token"),
        ({"payload": '{"body": "{\\"accessKey\\": \\"x\\"}"}'}, "The payload has a value named accessKey"),
        (
            {"schedule": {"schedules": [{"every": 60, "payload_patch": {"token": "x"}}]}},
            "The schedule has a value named token",
        ),
        ({"payload": {"password": "", "token": None, "secret": 7, "api_key": ["x"], "pwd": {"a": "b"}}}, ""),
        ({"payload": {"secret": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:a"}}, ""),
        (
            {"payload": {"token": "{{execution_id}}", "nextToken": "x", "page_token": "y", "tokens": "z"}},
            "",
        ),
        ({"payload": {"secret_name": "prod", "password_file": "/run/x", "key": "a", "author": "me"}}, ""),
        ({"payload": {"note": "the bearer presents it, Bearer certificates"}}, ""),
        ({"target": http(accept="text/plain", **{"Idempotency-Key": "a"})}, ""),
        ({"payload": {"note": "sk-short, task-abcdefghijklmnopq"}}, ""),
    ],
)
def test_credentials_in_plain_text_are_named_with_what_to_do(
    world: World, fields: dict[str, Any], named: str
) -> None:
    stored = world.registry.put("alice", "j", {**job(cron="0 5 * * *"), **fields})
    warnings = list(job_warnings(stored))
    assert len(warnings) == bool(named)
    assert all(named in warning and "secret://" in warning for warning in warnings)


def test_a_reference_to_a_secret_is_no_credential(world: World) -> None:
    world.secrets.put("alice", "token", "a long enough value", world.clock.now())
    target = http("https://example.com/?token=secret://token", authorization="Bearer secret://token")
    payload = {"password": "secret://token", "dsn": "x", "db": {"api_key": "k-secret://token"}}
    fields = {"target": target, "payload": payload}
    stored = world.registry.put("alice", "j", {**job(cron="0 5 * * *"), **fields})
    assert list(job_warnings(stored)) == []


def test_a_job_that_fires_never_again_says_so(world: World) -> None:
    fields = job(cron="0 5 * * *", start_at="2026-11-22T00:00:00Z", end_at="2026-11-22T04:00:00Z")
    (warning,) = job_warnings(world.registry.put("alice", "j", fields))
    assert "never again" in warning


@pytest.mark.parametrize(("region", "is_known"), [("eu-central-1", True), ("eu-centrale-1", False)])
def test_a_region_that_aws_does_not_have_is_named(world: World, region: str, is_known: bool) -> None:
    target = {**job()["target"], "arn": f"arn:aws:lambda:{region}:123456789012:function:report"}
    stored = world.registry.put("alice", "j", {**job(cron="0 5 * * *"), "target": target})
    assert [region in warning for warning in job_warnings(stored)] == ([] if is_known else [True])
