"""A later `make up` deploys with the parameters of the earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts.embedded import Embedded, EmbeddedError, __main__, deployment

RUNNING = Embedded("http://127.0.0.1:1", 1, 1, "/nowhere", "http://127.0.0.1:1/api")


@pytest.fixture
def deployments(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """The parameters of each deployment."""
    deployed: list[Mapping[str, str]] = []

    def deploy(embedded: Embedded, *, params: Mapping[str, str], **_: Any) -> Embedded:
        deployed.append(params)
        if params.get("tracing") == "broken":
            raise EmbeddedError("does not deploy")
        return embedded

    monkeypatch.setattr(__main__, "deploy", deploy)
    monkeypatch.setattr(__main__, "find", lambda _: RUNNING)
    monkeypatch.setattr(__main__, "stop", lambda _: True)
    return deployed


def test_a_later_deployment_keeps_and_replaces_parameters(
    deployments: list[Mapping[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> str:
        __main__.main([*words, "--state-dir", str(tmp_path)])
        return capsys.readouterr().out

    assert "as before" not in run("deploy", "--param", "spreadS=60", "--param", "apiMemoryMb=512")
    assert "as before: spreadS=60; --forget ends that" in run("deploy", "--param", "apiMemoryMb=768")
    run("deploy", "--param", "tracing=broken")
    run("deploy")
    run("deploy", "--stage", "test")
    run("deploy", "--forget")
    run("deploy")
    kept = {"spreadS": "60", "apiMemoryMb": "768"}
    assert deployments == [
        {"spreadS": "60", "apiMemoryMb": "512"},
        kept,
        {**kept, "tracing": "broken"},
        kept,
        {},
        {},
        {},
    ]
    run("deploy", "--param", "spreadS=60")
    run("reset")
    run("deploy")
    assert deployments[-1] == {}


def test_wrong_parameters_are_refused_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError) as refused:
        deployment.deploy(
            replace(RUNNING, state_dir=str(tmp_path)),
            stage="local",
            params={"executorMemoryMb": "64", "spreads": "60"},
        )
    assert str(refused.value) == (
        "executorMemoryMb=64 is not valid; accepted: a whole number from 128 to 10240; "
        "spreads: there is no such parameter; did you mean spreadS?"
    )
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
