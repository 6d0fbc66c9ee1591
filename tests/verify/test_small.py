"""A small `make verify`, as the owner of an account runs it, by a user with exactly the published policies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.embedded, pytest.mark.release]

ROOT = Path(__file__).resolve().parents[2]


def test_a_small_verification_finds_no_problem_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "scripts.verify", "--embedded", "--small"),
            *("--stage", "trial", "--yes", "--output", str(tmp_path)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "verify-trial.json").read_text())
    assert (report["problems"], report["left_behind"]) == ([], [])
