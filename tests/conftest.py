"""Shared by all tests: no test reaches a real account, and each may have a world of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.worlds import World, world


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the developer's shell holds, tests use none of it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)


@pytest.fixture
def w() -> Iterator[World]:
    """A fresh Minute8 at 2026-11-21T03:12:00Z."""
    with world() as fresh:
        yield fresh


@pytest.fixture
def atomic(monkeypatch: pytest.MonkeyPatch) -> None:
    """One request at a time: moto's are not atomic, and a transaction that fails undoes what others did meanwhile."""
    lock, call = threading.Lock(), BaseClient._make_api_call  # type: ignore[attr-defined]

    def alone(client: BaseClient, *arguments: Any) -> Any:
        with lock:
            return call(client, *arguments)

    monkeypatch.setattr(BaseClient, "_make_api_call", alone)
