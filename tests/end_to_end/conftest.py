"""An embedded AWS for this test session alone, with IAM enforced, and Minute8 deployed to it as stage `test`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.embedded import Embedded, deploy, kill, remove, start
from scripts.embedded.deployment import client

STAGE = "test"


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A running embedded AWS with stage `test` deployed, under the strict layer: with AWS's rules, and IAM enforced."""
    state_dir: Path = tmp_path_factory.mktemp("embedded-aws")
    instance = start(state_dir, 0, strict=True, tied=True)
    try:
        yield deploy(instance, stage=STAGE)
        remove(instance, stage=STAGE)
    finally:
        kill(state_dir)


@pytest.fixture
def aws(embedded: Embedded, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Point this process's AWS clients at the instance; returns a function service -> boto3 client."""
    for name, value in embedded.env().items():
        monkeypatch.setenv(name, value)
    return lambda service: client(embedded, service)
