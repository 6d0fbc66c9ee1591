"""Follow docs/first-hour.md word by word on an embedded AWS that stands in for an account: python -m tests.first_hour

It takes some ten minutes, so it is not a part of CI. `--without "Verify"` leaves out a section, which CI has by itself.
The upgrade and the removal happen under load (load.py).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import CalledProcessError
from typing import Final

from scripts import parameters
from scripts.demo import functions
from scripts.demo.stage import TARGET_SOURCE
from scripts.embedded import kill, start
from scripts.embedded.as_account import PARAMS, POLLING
from scripts.embedded.deployment import client
from scripts.newcomer import ROOT, Shell
from scripts.verify.made import resources_of
from tests.first_hour.load import Load

STAGE: Final = "dev"
UPGRADE: Final = "The first upgrade, and back"
UNDER_LOAD: Final = (UPGRADE, "Removal")
# A load goes on for so much longer than twice the slowest deployment so far.
_MARGIN_S: Final = 20
PAGE: Final = ROOT / "docs" / "first-hour.md"
_COMMANDS: Final = re.compile(r"```console\n(.*?)```", re.DOTALL)
_ADDRESS: Final = re.compile(r", at (https://\S+)")


def sections() -> Iterator[tuple[str, list[str]]]:
    """The page's headings, and the commands below each."""
    for part in PAGE.read_text().split("\n## ")[1:]:
        blocks = _COMMANDS.findall(part)
        lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
        yield part.partition("\n")[0], lines


def on_this_machine(command: str, address: str) -> str:
    """The command with what an account needs not: this machine's layers, a small verification, the real address."""
    if command.startswith("export MINUTE8_URL="):
        return f"export MINUTE8_URL={address}"
    if not command.startswith(("make deploy", "make verify")):
        return command
    more = " ".join(f"--param={pair}" for pair in parameters.pairs(PARAMS))
    if command.startswith("make verify"):
        more += " --small --yes"
    command, _, arguments = command.partition(" ARGS=")
    return f"{command} ARGS='{arguments} {more}'"


def main() -> int:
    """Follow the page; returns 0 if each command succeeds and nothing is left at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.first_hour", description=__doc__)
    parser.add_argument("--without", action="append", default=[], help="a section by its heading")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="minute8-first-hour-", ignore_cleanup_errors=True) as directory:
        state = Path(directory) / "state"
        embedded = start(state, 0, strict=True, tls=True, tied=True)
        clients = lambda service: client(embedded, service)  # noqa: E731
        environment = {**embedded.env(), **POLLING, "PATH": f"{directory}:{os.environ['PATH']}"}
        os.environ |= embedded.env()
        loads: list[Load] = []
        wrong: list[str] = []
        slowest_s = 0.0
        try:
            target = functions.create(clients, "acme-hello", TARGET_SOURCE.read_text(), timeout_s=60)
            shell = Shell(Path(directory), {**environment, "TARGET": target}, {"aws": "tests.runbook.aws"})
            shell.run(f'cd "{ROOT}"')
            address = ""
            for heading, commands in sections():
                if heading in options.without:
                    continue
                if heading in UNDER_LOAD:
                    loads.append(Load(embedded.env(), STAGE, "acme", target, int(2 * slowest_s) + _MARGIN_S))
                    time.sleep(max(0.0, loads[-1].first + 5 - time.time()))
                for command in commands:
                    print(f"$ {command}", flush=True)
                    began = time.monotonic()
                    try:
                        printed = shell.run(f'cd "{ROOT}"; {on_this_machine(command, address)}')
                    except CalledProcessError as error:
                        print(f"{error.output}\n$ {command} exits with {error.returncode}")
                        return 1
                    if command.startswith("make deploy"):
                        slowest_s = max(slowest_s, time.monotonic() - began)
                    print(printed, flush=True)
                    address = next(iter(_ADDRESS.findall(printed)), address)
                    if "create-access-key" in command:
                        use(shell, printed)
                if heading == UPGRADE and (wrong := loads[-1].judge()):
                    print(f"under load: {'; '.join(wrong)}")
            return 1 if _remaining() or wrong else 0
        finally:
            kill(state)


def use(shell: Shell, printed: str) -> None:
    """What `aws configure` does with the new key."""
    key = json.loads(printed)["AccessKey"]
    shell.run(f"export AWS_ACCESS_KEY_ID={key['AccessKeyId']} AWS_SECRET_ACCESS_KEY={key['SecretAccessKey']}")


def _remaining() -> bool:
    """Print what the page leaves of its stages."""
    region = os.environ["AWS_REGION"]
    remaining = [resource for stage in ("trial", STAGE) for resource in resources_of(stage, region)[0]]
    print(f"left: {', '.join(map(str, remaining)) or 'nothing'}")
    return bool(remaining)


if __name__ == "__main__":
    sys.exit(main())
