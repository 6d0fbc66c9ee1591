"""Deploy a release by the commands of its README alone, on an embedded AWS: python -m tests.first_hour.release

It takes some two minutes, so it is not a part of CI, which compares the template with that of a deployment instead.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path
from subprocess import CalledProcessError
from typing import Final

from common.version import VERSION
from scripts import release
from scripts.demo import functions
from scripts.demo.stage import TARGET_SOURCE
from scripts.embedded import kill, start
from scripts.embedded.as_account import PARAMS
from scripts.embedded.deployment import client
from scripts.newcomer import ROOT, Shell

_BLOCKS: Final = re.compile(r"(?:^    .*\n)+", re.MULTILINE)
_BUCKET: Final = "releases-of-acme"
_OF_OTHER_TOOLS: Final = ("resource ", "new CfnInclude")
# What its functions have after the second deployment, and what CloudFormation refuses.
_CHANGED: Final = "executorMemoryMb=640 serviceLatenessS=2.5"
_REFUSED: Final = "apiMemoryMb=64"
# A job, after the README's commands.
_TRIAL: Final = (
    "minute8 tenants create acme --stage prod --allow-target $TARGET",
    "export MINUTE8_KEY=$(minute8 keys create acme --role write --stage prod 2>/dev/null)",
    "minute8 jobs create hello --every 1m --target $TARGET",
    "minute8 jobs run hello --wait",
)


def commands(readme: str) -> list[str]:
    """The README's blocks that are for a shell, with a bucket."""
    blocks = [re.sub("^    ", "", block, flags=re.MULTILINE) for block in _BLOCKS.findall(readme)]
    return [
        block.replace("B=your-bucket", f"B={_BUCKET}")
        for block in blocks
        if not block.startswith(_OF_OTHER_TOOLS)
    ]


def shell_without_checkout(place: Path, environment: Mapping[str, str]) -> Shell:
    """One with `aws` and the `pip` of an empty environment, and without this checkout's modules."""
    venv.create(place / "venv", with_pip=True)
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    path = f"{place / 'venv' / 'bin'}:{place}:/usr/bin:/bin"
    shell = Shell(place, {**environment, **pip, "PATH": path, "PYTHONPATH": ""})
    aws = place / "aws"
    aws.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m tests.runbook.aws "$@"\n')
    aws.chmod(0o755)
    return shell


def main() -> int:
    """Build it, deploy it twice, run a job; returns 0 if each command succeeds and the parameters arrive."""
    with tempfile.TemporaryDirectory(prefix="minute8-release-", ignore_cleanup_errors=True) as directory:
        state, place = Path(directory) / "state", Path(directory) / "shell"
        place.mkdir()
        release.build({**PARAMS, "deletionPolicy": "Delete", "deletionProtection": "false"}, Path(directory))
        folder = Path(directory) / f"minute8-{VERSION}"
        embedded = start(state, 0, strict=True, tls=True, tied=True)
        clients = lambda service: client(embedded, service)  # noqa: E731
        try:
            clients("s3").create_bucket(Bucket=_BUCKET)
            target = functions.create(clients, "acme-hello", TARGET_SOURCE.read_text(), timeout_s=60)
            shell = Shell(
                place, {**embedded.env(), "TARGET": target}, {"aws": "tests.runbook.aws", "pip": "pip"}
            )
            first, *after = commands((folder / "README.md").read_text())
            raised, refused = (
                first.replace("CodeBucket=", f"{params} CodeBucket=") for params in (_CHANGED, _REFUSED)
            )
            for command in (first, *after, raised, f"! ({refused})", *_TRIAL):
                print(f"$ {command.rstrip()}", flush=True)
                try:
                    print(shell.run(f'cd "{folder}"; {command}'), flush=True)
                except CalledProcessError as error:
                    print(f"{error.output}\nexits with {error.returncode}")
                    return 1
            live = clients("lambda").get_function_configuration(
                FunctionName="minute8-prod-executor", Qualifier="live"
            )
            settings = {"executorMemoryMb": str(live["MemorySize"]), **live["Environment"]["Variables"]}
            print({name: settings[name] for name in ("executorMemoryMb", "SERVICE_LATENESS_S", "DEPLOYMENT")})
            return int((settings["executorMemoryMb"], settings["SERVICE_LATENESS_S"]) != ("640", "2.5"))
        finally:
            kill(state)


if __name__ == "__main__":
    sys.exit(main())
