"""Shared by all tests: no test reaches a real account, and each may have its own world."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.worlds import World, make_world, world

# The folders that take longest, in this order: what begins late ends late, while other workers have nothing to do.
LONGEST = (
    "end_to_end",
    "verify",
    "deploy",
    "strict",
    "storage",
    "simulation",
    "executor",
    "cli",
    "benchmarks",
    "foreign",
)
# Their files share a server, so one worker runs all of them.
TOGETHER = ("end_to_end", "deploy", "storage")


def folder_of(nodeid: str) -> str:
    """`api` of tests/api/test_jobs.py::test_it."""
    return nodeid.split("/")[1]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {folder: n for n, folder in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(folder_of(item.nodeid), len(order)))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each file, and each folder of TOGETHER, to one worker, in the order of the tests."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            folder = folder_of(nodeid)
            return folder if folder in TOGETHER else nodeid.partition("::")[0]

    config.option.loadscopereorder = False  # it would begin with the files of most tests
    return ByFile(config, log)


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests use nothing of the developer's shell."""
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
def on_moto() -> Iterator[None]:
    """moto answers every AWS client, for tests of the requests to AWS. It takes 0.2 s; a world in memory takes none."""
    from moto import mock_aws

    with mock_aws():
        yield


@pytest.fixture
def moto_world(on_moto: None) -> World:
    """A fresh Minute8 at 2026-11-21T03:12:00Z over botocore's own DynamoDB client."""
    import boto3

    return make_world(boto3.client("dynamodb", region_name="us-east-1"), "2026-11-21T03:12:00Z")
