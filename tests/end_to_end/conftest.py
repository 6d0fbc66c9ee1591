"""An embedded AWS for this test session alone, with IAM enforced, and Minute8 deployed to it as stage `test`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minute8.client import Operator
from scripts.embedded import Embedded, deploy, kill, start
from scripts.embedded.deployment import client
from tests.end_to_end.leaving import deletion_begun

STAGE = "test"


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A running embedded AWS with stage `test` deployed, under the strict layer: with AWS's rules, and IAM enforced."""
    state_dir: Path = tmp_path_factory.mktemp("embedded-aws")
    instance = start(state_dir, 0, strict=True, tied=True)
    try:
        yield deploy(instance, stage=STAGE)  # not removed here: tests/verify removes a stage
    finally:
        kill(state_dir)


@pytest.fixture(scope="session", autouse=True)
def leaving(request: pytest.FixtureRequest) -> Iterator[Operator | None]:
    """The operator who deletes the tenant of `test_a_tenant_is_removed`, if that test is selected."""
    if all("test_a_tenant_is_removed" not in item.name for item in request.session.items):
        yield None
        return
    with deletion_begun(request.getfixturevalue("embedded")) as operator:
        yield operator


@pytest.fixture
def aws(embedded: Embedded, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Point this process's AWS clients at the instance; returns a function service -> boto3 client."""
    for name, value in embedded.env().items():
        monkeypatch.setenv(name, value)
    return lambda service: client(embedded, service)
