"""The versions between which data is handed over, each in a process of its own.

No release has a successor yet, so the next two versions are made up: copies of this checkout with changes that show the
rule. What is added is ignored by who does not know it. What is renamed is read under both names by one version, and
written under the new name by the one after it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
_PLAYER: Final = Path(__file__).with_name("player.py")
# What a player imports of a checkout.
_FOLDERS: Final = (
    "common",
    "scheduler",
    "executor",
    "minute8/__init__.py",
    "minute8/eventbridge",
    ":(glob)tests/*.py",
    "tests/simulation",
)


@dataclass(frozen=True)
class Release:
    """A version: its name, and by file how its text differs from this checkout's, as (here, there)."""

    name: str
    changes: Mapping[str, Sequence[tuple[str, str]]]


_A_FIELD_MORE: Final = {
    "common/planning/execution.py": [
        (
            "return _writer.encode(self).decode()",
            'return _writer.encode(self).decode()[:-1] + ",\\"next\\":1}"',
        )
    ],
    "serverless.yml": [("    STAGE: ${sls:stage}\n", '    STAGE: ${sls:stage}\n    ADDED_BY_NEXT: "on"\n')],
}
_READS_BOTH: Final = ('item.get("body")', 'item.get("execution", item.get("body"))')
_WRITES_THE_NEW: Final = ('"body": execution.encode()', '"execution": execution.encode()')
NEXT: Final = Release("next", {**_A_FIELD_MORE, "common/planning/postponed.py": [_READS_BOTH]})
AFTER: Final = Release(
    "after", {**_A_FIELD_MORE, "common/planning/postponed.py": [_READS_BOTH, _WRITES_THE_NEW]}
)
# Its executor cannot start.
BAD: Final = Release(
    "bad",
    {"executor/handler.py": [("from __future__ import annotations\n", 'raise ImportError("a bad build")\n')]},
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
    """The release's code: this checkout's files with its changes; all of them without `folders`."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", *folders],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.splitlines()):
        if (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, directory / name)
    for name, changes in release.changes.items():
        if not (directory / name).exists():
            continue
        text = (directory / name).read_text()
        for text_here, text_there in changes:
            assert text.count(text_here) == 1, f"{name} has no single {text_here!r}"
            text = text.replace(text_here, text_there)
        (directory / name).write_text(text)
    return directory
