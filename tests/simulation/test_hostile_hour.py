"""After the hostile requests of an hour, a function has at most 80 % of its memory, and the second half added little.

`HOSTILE_HOUR=1` plays all that the quotas allow in an hour, which takes most of one; a release plays a part.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.parameters import DEFAULTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.release
@pytest.mark.parametrize(
    ("function", "part"),
    [
        ("api", "0.001"),
        ("executor", "0.01"),
        ("scheduler", "0.01"),
        ("planner", "0.01"),
        ("notifier", "0.05"),
    ],
)
def test_an_hour_of_hostile_requests_stays_within_the_memory(function: str, part: str) -> None:
    share = os.environ.get("HOSTILE_HOUR", part)
    words = [sys.executable, "-m", "tests.simulation.hostile_hour", function, share]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    tenths = json.loads(done.stdout.splitlines()[-1])
    assert len(tenths) == 11
    assert tenths[10] <= 0.8 * int(DEFAULTS[f"{function}MemoryMb"]), tenths
    # The first half of a part may still fill caches.
    assert tenths[10] - tenths[5] <= 40, tenths
