"""The versions between which data is handed over, each in a process of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
_PLAYER: Final = Path(__file__).with_name("player.py")
# What a player imports of a checkout.
_FOLDERS: Final = (
    "common",
    "scheduler",
    "executor",
    ":(glob)tests/*.py",  # a version has worlds.py alone, or with stand_ins.py
    "tests/simulation",
)


@dataclass(frozen=True)
class Release:
    """An earlier version: its name, its commit, and what it cannot read yet."""

    name: str
    commit: str
    reads_packs_and_wakes: bool = True
    keeps_long_waits: bool = True
    has_holds: bool = True
    sets_aside: bool = True


# A release gets its line here when the next version begins. Nothing has a tag yet: 0.1.0 is the commit before the one
# that made the version 0.2.0. 0.2.0 is not released, and grew long, so a state in its middle is a version too.
RELEASES: Final = (
    Release(
        "0.1.0",
        "873c507d75266bbbcb79e7e9c84bd5d10882260b",
        reads_packs_and_wakes=False,
        keeps_long_waits=False,
        has_holds=False,
        sets_aside=False,
    ),
    Release(
        "0.2.0-middle",
        "41c8a5b1619f314cf1df9b2c121dbcbdf54a492b",
        reads_packs_and_wakes=False,
    ),
)


class Version:
    """A process that plays steps with one version's code."""

    def __init__(self, checkout: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(_PLAYER), str(checkout)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=checkout,
        )

    def play(self, step: str, *arguments: Any) -> Any:
        """Do one of the player's steps. Raises AssertionError with what the player's code raised."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([step, *arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the player ended in {step}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["ok"]

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


def checked_out(release: Release, directory: Path, folders: Sequence[str] = _FOLDERS) -> Path:
    """The release's code, from this repository's history; all of it without `folders`."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", release.commit, *folders], capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip("the tests of upgrades need the history: git fetch --unshallow")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as opened:
        opened.extractall(directory, filter="data")
    return directory
