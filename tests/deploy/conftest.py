"""An embedded AWS for this folder's tests, with the working tree deployed as stage `test`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.embedded import Embedded, deploy, kill, start


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A running embedded AWS with stage `test` deployed."""
    state_dir: Path = tmp_path_factory.mktemp("deployed")
    instance = start(state_dir, 0, tied=True)
    try:
        yield deploy(instance, stage="test")
    finally:
        kill(state_dir)


@pytest.fixture(scope="session")
def template(deployed: Embedded) -> dict[str, Any]:
    """The CloudFormation template that the deployment made of serverless.yml."""
    path = (
        Path(deployed.state_dir)
        / "service-test"
        / ".serverless"
        / "cloudformation-template-update-stack.json"
    )
    content: dict[str, Any] = json.loads(path.read_text())
    return content
