"""Which targets a tenant's patterns cover; hostile patterns and hostile targets."""

from __future__ import annotations

import time
from typing import Any

import pytest

from common.tenants.allowed_targets import glob_matches, is_allowed, is_blocked

ARN = "arn:aws:lambda:us-east-1:123456789012:function:team-a-report"
ROLE = "arn:aws:iam::210987654321:role/minute8"
STOP = "arn:aws:scheduler:::aws-sdk:batch:terminateJob"


def arn(text: str = ARN, **fields: Any) -> dict[str, Any]:
    return {"kind": "lambda", "arn": text, **fields}


def url(text: object) -> dict[str, Any]:
    return {"kind": "http", "url": text}


@pytest.mark.parametrize(
    ("target", "patterns"),
    [
        (arn(), [ARN]),
        (arn(), ["nothing", "arn:aws:lambda:*:123456789012:function:team-a-*"]),
        (arn(), ["arn:aws:lambda:us-east-?:*:function:*"]),
        (arn(), ["*"]),
        (arn(ARN + ":live"), [ARN + "*"]),
        (arn(role_arn=ROLE), [ARN, "arn:aws:iam::210987654321:role/*"]),
        (url("https://hooks.example.com/a"), ["hooks.example.com"]),
        (url("https://hooks.example.com/a"), ["HOOKS.example.com"]),
        (url("https://hooks.example.com/a"), ["*.example.com"]),
        (url("https://a.b.example.com/a"), ["*.example.com"]),
        (url("https://hooks.example.com:443/a"), ["hooks.example.com"]),
        (url("https://hooks.example.com:8443/a"), ["hooks.example.com:8443"]),
        (url("https://[2606:4700::1111]/"), ["[2606:4700::1111]"]),
        (url("https://8.8.8.8/"), ["8.8.8.8"]),
        (url("https://anything.example/"), ["*"]),
    ],
)
def test_allowed(target: dict[str, Any], patterns: list[str]) -> None:
    assert is_allowed(target, patterns)


@pytest.mark.parametrize(
    ("target", "patterns"),
    [
        (arn(), []),
        (arn(), [""]),
        (arn(), ["arn:*"]),
        (arn(), ["arn:aws:*"]),
        (arn(), [ARN.upper()]),
        (arn(), ["arn:aws:lambda:us-east-1:*:team-a-report"]),
        (arn(), ["arn:aws:lambda:us-east-1:123456789012:function:team-[a-b]-report"]),
        (arn(ARN + ":live"), [ARN]),
        # A wildcard for the region does not swallow the account.
        (
            arn("arn:aws:lambda:eu-west-1:999999999999:function:x:123456789012:function:x"),
            ["arn:aws:lambda:*:123456789012:function:x"],
        ),
        (arn("arn:aws:sqs:us-east-1:123456789012:team-a-report"), ["arn:aws:lambda:*:*:*"]),
        (arn(role_arn=ROLE), [ARN]),
        (arn("arn:aws:lambda:eu-west-1:9:function:x", role_arn=ROLE), ["arn:aws:iam::*:role/*"]),
        (arn(role_arn=""), [ARN]),
        (arn(role_arn=5), ["*"]),
        (arn(role_arn=None), ["*"]),
        (arn(role_arn=""), ["*"]),
        ({"kind": "lambda", "arn": "", "role_arn": ROLE}, [ROLE]),
        (arn(stop={"arn": STOP}), [ARN]),
        (arn(stop={"arn": ""}), ["*"]),
        (arn(stop={}), ["*"]),
        (arn(stop="nonsense"), ["*"]),
        ({"kind": "lambda"}, ["*"]),
        ({}, ["*"]),
        (arn(5), ["*"]),  # type: ignore[arg-type]
        # An ARN does not make an HTTP target allowed, nor a URL an ARN one.
        ({"kind": "http", "arn": ARN}, [ARN, "*"]),
        ({"kind": "http", "arn": ARN, "url": "https://evil.example/"}, [ARN]),
        (arn("https://hooks.example.com/"), ["hooks.example.com"]),
        (url("https://example.com/"), ["*.example.com"]),
        (url("https://evilexample.com/"), ["*.example.com"]),
        (url("https://hooks.example.com.evil.com/"), ["hooks.example.com", "*.example.com"]),
        (url("https://hooks.example.com@evil.com/"), ["hooks.example.com", "*"]),
        (url("https://evil.com\\@hooks.example.com/"), ["hooks.example.com", "*"]),
        (url("https://evil.com/#@hooks.example.com"), ["hooks.example.com", "*"]),
        (url("https://evil.com/hooks.example.com"), ["hooks.example.com"]),
        (url("https://hooks.example.com:8443/"), ["hooks.example.com"]),
        (url("https://hooks.example.com/"), ["hooks.example.com:8443"]),
        (url("https://hooks.example.com./"), ["hooks.example.com", "*"]),
        (url("https://1.2.3.4/"), ["*.4", "*.3.4"]),
        (url("https://hooks.example.com/"), ["*.com.evil", "hooks.*.com", "h*"]),
        (url("https://hооks.example.com/"), ["hooks.example.com", "*"]),  # Cyrillic о
        (url(5), ["*"]),
        (url(None), ["*"]),
        (url("https://hooks.example.com/"), [None, 5]),
    ],
)
def test_not_allowed(target: dict[str, Any], patterns: list[Any]) -> None:
    assert not is_allowed(target, patterns)


@pytest.mark.parametrize("target", [arn(), arn(role_arn=ROLE), arn(stop={"arn": STOP, "parameters": {}})])
def test_a_hold_is_of_the_address_alone(target: dict[str, Any]) -> None:
    assert is_blocked(target, [ARN])
    assert not is_blocked(target, [ROLE])
    assert not is_blocked(target, [STOP])


def test_a_hostile_glob_takes_no_time() -> None:
    used = time.thread_time()
    assert not glob_matches("*a" * 500, "a" * 499 + "b" * 500)
    assert time.thread_time() - used < 1


@pytest.mark.parametrize(
    ("glob", "text", "matches"),
    [
        ("", "", True),
        ("*", "", True),
        ("", "a", False),
        ("?", "", False),
        ("a*b*c", "aXbXbYc", True),
        ("a*b*c", "aXbXbY", False),
        ("**", "x", True),
        ("*.fifo", "a.fifo", True),
        ("a?c", "abc", True),
        ("a.c", "abc", False),
    ],
)
def test_globs(glob: str, text: str, matches: bool) -> None:
    assert glob_matches(glob, text) is matches
