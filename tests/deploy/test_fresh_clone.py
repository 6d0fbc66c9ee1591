"""`osls deploy` in a fresh clone, by the tool alone: nothing was installed or built before."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from scripts.build_layer import ROOT
from scripts.embedded import Embedded, kill, start
from scripts.embedded.deployment import api_url

OSLS = ROOT / "node_modules" / ".bin" / "osls"
PATIENCE_S = 600


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """An embedded AWS without a deployment."""
    state_dir = tmp_path_factory.mktemp("account")
    try:
        yield start(state_dir, 0, tied=True)
    finally:
        kill(state_dir)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "minute8")], check=True)
    return tmp_path / "minute8"


def osls(clone: Path, account: Embedded, verb: str, path: str) -> subprocess.CompletedProcess[str]:
    """Run the tool in the clone as a person would, with this PATH."""
    environment = {"PATH": path, "HOME": os.environ["HOME"], "NODE_NO_WARNINGS": "1", **account.env()}
    environment |= {"SLS_TELEMETRY_DISABLED": "1", "SLS_NOTIFICATIONS_MODE": "off"}
    environment |= {name: value for name, value in os.environ.items() if "proxy" in name.lower()}
    return subprocess.run(
        [str(OSLS), verb, "--stage", "test"],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.embedded
@pytest.mark.release
def test_the_tool_alone_deploys_a_fresh_clone_twice(clone: Path, account: Embedded) -> None:
    first = osls(clone, account, "deploy", os.environ["PATH"])
    assert first.returncode == 0, first.stdout + first.stderr
    assert "build: the layer of lambda.txt for local" in first.stderr
    assert httpx.get(f"{api_url(account, 'test')}/v1/tenant", timeout=60).status_code == 401
    assert "<title>" in httpx.get(f"{api_url(account, 'test')}/console").text
    second = osls(clone, account, "deploy", os.environ["PATH"])
    assert second.returncode == 0, second.stdout + second.stderr


@pytest.mark.embedded
@pytest.mark.release
@pytest.mark.parametrize(
    ("python", "words"),
    [
        ("exit 1", "Python 3.11 or newer builds the layers"),
        ('[ "$1" = -c ]', "has neither pip nor venv"),
    ],
)
def test_what_python_lacks_is_said(clone: Path, account: Embedded, python: str, words: str) -> None:
    (clone / "node_modules").symlink_to(ROOT / "node_modules")
    tools = clone.parent / "tools"
    tools.mkdir()
    for name in ("python3", "python"):
        (tools / name).write_text(f"#!/bin/sh\n{python}\n")
        (tools / name).chmod(0o755)
    node = Path(shutil.which("node") or "").resolve()
    (tools / "node").symlink_to(node)
    refused = osls(clone, account, "package", f"{tools}:/usr/bin:/bin")
    assert refused.returncode != 0
    assert words in refused.stdout + refused.stderr
