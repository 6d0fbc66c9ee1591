"""Runs the newcomer's session of docs/cli.md on an embedded AWS, and writes its output into the document.

    python -m scripts.newcomer

The document holds the commands. An end-to-end test runs them too, and compares their output with the document.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.demo.stage import Stage
from scripts.embedded import Embedded, deploy, kill, start

ROOT: Final = Path(__file__).resolve().parents[1]
DOCUMENT: Final = ROOT / "docs" / "cli.md"
_BLOCK: Final = re.compile(r"(?<=## A newcomer's session\n)(.*?```console\n)(.*?)(```\n)", re.DOTALL)
_EXECUTION_ID: Final = re.compile(r"\w+:\w+:\d{8}T\d{6}Z:[\w:-]+")
# These commands read; the expected state may take a moment to appear.
_LOOKS: Final = ("failures", "jobs show", "runs list", "runs show")
_PATIENCE_S: Final = 300.0
# What differs between sessions, and its replacement for comparisons.
_VARYING: Final = (
    (_EXECUTION_ID, "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "REQUEST"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "TRACE"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "KEY"),
    (re.compile(r"\bin \d+ \w+|\b\d+ \w+ ago|\bnow\b"), "WHEN"),
    (re.compile(r"\b\d+(\.\d+)? (s|ms|MB)\b"), "MUCH"),
    (re.compile(r'File "[^"]*/(\w+\.py)", line \d+'), r"\1"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command and its output."""

    command: str
    printed: str

    @property
    def normal(self) -> str:
        """The output without times, ids and widths of columns."""
        text = self.printed
        for pattern, stand_in in _VARYING:
            text = pattern.sub(stand_in, text)
        lines = [line.strip() for line in text.splitlines()]
        return "\n".join(line for line in lines if line.strip("^"))


def documented_steps() -> list[Step]:
    """The session in the document."""
    match = _BLOCK.search(DOCUMENT.read_text())
    assert match, f"{DOCUMENT} has no session"
    return [
        Step(command, printed)
        for part in match[2].split("$ ")[1:]
        for command, _, printed in [part.partition("\n")]
    ]


def write(steps: Sequence[Step]) -> None:
    """Write the new output into the document."""
    session = "".join(f"$ {step.command}\n{step.printed}" for step in steps)
    DOCUMENT.write_text(
        _BLOCK.sub(lambda match: match[1] + session + match[3], DOCUMENT.read_text(), count=1)
    )


def play(steps: Sequence[Step], environment: Mapping[str, str]) -> Iterator[Step]:
    """Run the commands in a shell, one after another, and yield what they print.

    The ids of this session's runs replace those in the document. Raises CalledProcessError if a command fails.
    """
    ids: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as directory:
        shell = Shell(Path(directory), environment)
        for step in steps:
            command = _translated(step.command, ids)
            give_up_at = time.monotonic() + (_PATIENCE_S if _is_look(command) else 0)
            happened = Step(command, shell.run(command))
            while happened.normal != step.normal and time.monotonic() < give_up_at:
                time.sleep(0.5)
                happened = Step(command, shell.run(command))
            then, now = (_EXECUTION_ID.findall(printed) for printed in (step.printed, happened.printed))
            ids |= dict(zip(then, now, strict=False))
            yield happened


def _translated(command: str, ids: Mapping[str, str]) -> str:
    return _EXECUTION_ID.sub(lambda match: ids.get(match[0], match[0]), command)


def environment_of(embedded: Embedded, stage: str) -> dict[str, str]:
    """What the session expects: AWS credentials, the API's address, and a function to call."""
    target = Stage(embedded.env(), stage).deploy_target()
    assert embedded.api_url
    return embedded.env() | {"MINUTE8_URL": embedded.api_url, "MINUTE8_STAGE": stage, "TARGET": target}


class Shell:
    """bash that keeps exported variables from one command to the next.

    It knows `minute8`, and `programs`: the name of a command, and the Python module that it is.
    """

    def __init__(
        self, directory: Path, environment: Mapping[str, str], programs: Mapping[str, str] | None = None
    ) -> None:
        for name, module in {"minute8": "minute8", **(programs or {})}.items():
            program = directory / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
            program.chmod(0o755)
        self._directory = directory
        self._kept = directory / "exported"
        self._kept.touch()
        self._environment = {
            "PATH": f"{directory}:/usr/bin:/bin",
            "HOME": str(directory),
            "PYTHONPATH": str(ROOT),
            "LANG": "C.UTF-8",
            **environment,
        }

    def run(self, command: str, answer: Callable[[str], str] = lambda _question: "n") -> str:
        """What the command prints. Raises CalledProcessError if it fails.

        If it asks for a yes or no, `answer` gets what it has printed since the last question.
        """
        script = f'. "{self._kept}"\n{command}\nstatus=$?\nexport -p > "{self._kept}"\nexit $status'
        started = subprocess.Popen(
            ["bash", "-c", script],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert started.stdin and started.stdout
        printed, answered = b"", 0
        with started, started.stdin as stdin, started.stdout as stdout:
            while chunk := os.read(stdout.fileno(), 65_536):
                printed += chunk
                if printed.endswith(b"[y/N]: "):
                    stdin.write(f"{answer(printed[answered:].decode())}\n".encode())
                    stdin.flush()
                    answered = len(printed)
        text = printed.decode()
        if started.returncode:
            raise subprocess.CalledProcessError(started.returncode, command, text)
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _is_look(command: str) -> bool:
    return command.startswith(tuple(f"minute8 {look}" for look in _LOOKS))


def main() -> None:
    """Run the session on its own embedded AWS."""
    with tempfile.TemporaryDirectory() as directory:
        state_dir = Path(directory)
        try:
            embedded = deploy(start(state_dir, 0, tied=True), stage="local")
            steps: list[Step] = []
            for step in play(documented_steps(), environment_of(embedded, "local")):
                print(f"$ {step.command}\n{step.printed}", end="", flush=True)
                steps.append(step)
        except subprocess.CalledProcessError as error:
            sys.exit(f"$ {error.cmd}\n{error.output}exit code {error.returncode}")
        finally:
            kill(state_dir)
    write(steps)


if __name__ == "__main__":
    main()
