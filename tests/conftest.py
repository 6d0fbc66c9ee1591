"""Shared by all tests: no test reaches a real account, and each may have its own world."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from common.planning import queue
from tests.worlds import World, make_world, open_world

# They decide how wide and how coloured a command prints, and which stage a function belongs to.
_FOREIGN = ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "STAGE")
# How long some tests look for examples, and where Terraform's provider is.
_OURS = ("MINUTE8_FUZZ", "MINUTE8_TIMING_EXAMPLES", "MINUTE8_CONSOLE_RUN", "MINUTE8_TF_PLUGINS")
_LOOPBACK = "localhost,127.0.0.1,127.0.0.9"


def _is_foreign(name: str) -> bool:
    if name.startswith(("AWS_", "MINUTE8_")):
        return not name.startswith(_OURS)
    return name in _FOREIGN


def _forget_the_shell() -> None:
    """Tests, and the processes that they start, see no account, stage or terminal of a developer or of CI."""
    for name in filter(_is_foreign, list(os.environ)):
        del os.environ[name]
    os.environ |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test")
    os.environ |= dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), "us-east-1")
    os.environ |= dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)
    # The proxies stay: pip may need them to build a layer.
    os.environ |= dict.fromkeys(
        ("NO_PROXY", "no_proxy"), f"{os.environ.get('NO_PROXY', '')},{_LOOPBACK}".strip(",")
    )


_forget_the_shell()
# A shell that starts the tests in the background lets them ignore Ctrl-C, and each process that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in each run, and no time limit for one: a busy machine is no fault.
# `--hypothesis-profile=default` looks for others.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

# The folders that take longest, in this order: what begins late ends late, while other workers have nothing to do.
SLOWEST_FOLDERS = (
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
    order = {folder: n for n, folder in enumerate(SLOWEST_FOLDERS)}
    items.sort(key=lambda item: order.get(folder_of(item.nodeid), len(order)))
    if repeated := [name for name, times in Counter(item.nodeid for item in items).items() if times > 1]:
        raise pytest.UsageError(f"of tests with one name, xdist runs only one: {repeated}")


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
def one_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are sent in their order, and one thread at a time moves a manual clock."""
    monkeypatch.setattr(queue, "_SENDERS", 1)


@pytest.fixture
def world() -> Iterator[World]:
    """A fresh Minute8 at 2026-11-21T03:12:00Z."""
    with open_world() as fresh:
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
