"""The export for Terraform: read and applied by Terraform with its provider of AWS, where they are installed."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from minute8.eventbridge.moving import written
from tests.api.conftest import new_pair
from tests.api.scheduler_client import scheduler_client, sign_at
from tests.cli.conftest import Desk
from tests.eventbridge.differential import comparable
from tests.eventbridge.served import served
from tests.eventbridge.test_exporting import GROUPS, MANY, ROLE, write
from tests.eventbridge.test_import import SCHEDULES
from tests.worlds import ARN

# Such as a directory that `terraform providers mirror` has filled. Nothing is downloaded.
PROVIDERS = os.environ.get("MINUTE8_TF_PLUGINS", "")
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "eventbridge.md").read_text()
_REQUIRED = 'terraform {\n  required_providers {\n    aws = { source = "hashicorp/aws" }\n  }\n}\n'
# MANY starts in 2030.
FAR = datetime(2029, 1, 1, tzinfo=UTC)
needs_terraform = pytest.mark.skipif(not shutil.which("terraform"), reason="there is no terraform here")
needs_provider = pytest.mark.skipif(
    not (shutil.which("terraform") and PROVIDERS),
    reason="there is no terraform, or MINUTE8_TF_PLUGINS names no directory with its provider",
)


def terraform(folder: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "TF_CLI_CONFIG_FILE": os.devnull,
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
    }
    return subprocess.run(
        ["terraform", *words], cwd=folder, env=environment, input=stdin, capture_output=True, text=True
    )


@needs_terraform
def test_terraform_reads_its_texts_as_they_were(tmp_path: Path) -> None:
    """Its own formatting changes no token, and its own parser returns the texts."""
    write("terraform", tmp_path)
    done = terraform(tmp_path, "fmt", "-check", "-diff", "-no-color")
    assert not done.stderr
    texts = ["${x}", "$${x}", "$$${x}", "%{y}", "%%{y}", "\b\f\n\t\\b \x7f", "ü\u2028", "$", "$$", "{"]
    (tmp_path / "empty").mkdir()
    for text in texts:
        shown = terraform(tmp_path / "empty", "console", stdin=f"base64encode({written._hcl(text)})\n")
        assert base64.b64decode(shown.stdout).decode() == text, shown


@needs_provider
def test_terraform_and_its_provider_take_the_files(tmp_path: Path) -> None:
    write("terraform", tmp_path)
    (tmp_path / "main.tf").write_text(_REQUIRED)
    assert terraform(tmp_path, "init", f"-plugin-dir={PROVIDERS}").returncode == 0
    done = terraform(tmp_path, "validate", "-no-color")
    assert done.returncode == 0, done.stderr + done.stdout


@needs_provider
def test_terraform_makes_the_exported_schedules_and_has_nothing_to_change_then(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """alice's export, applied for bob: he has the same schedules, and destroying them leaves nothing."""
    clock = desk.office.world.clock
    with served(desk.office) as address:
        sign_at(clock, monkeypatch)
        alice = scheduler_client(*new_pair("alice", "write", clock.now()))
        furnish(desk, alice)
        words = ("--format", "terraform", "--output", str(tmp_path), "--role-arn", ROLE)
        assert desk("export", "eventbridge", *words).code == 0
        pair = new_pair("bob", "write", clock.now())
        (tmp_path / "main.tf").write_text(configuration(*pair, address))

        def run(*words: str) -> None:
            done = terraform(tmp_path, *words, "-no-color")
            assert done.returncode == 0, done.stderr + done.stdout

        run("init", f"-plugin-dir={PROVIDERS}")
        run("apply", "-auto-approve")
        run("plan", "-detailed-exitcode")
        bob = scheduler_client(*pair)
        schedules = stored(bob)
        assert "own" in {name for _, name in schedules}
        for key, schedule in stored(alice).items():
            assert sent(schedules.pop(key)) == sent(schedule)
        assert [name for _, name in schedules] == ["own"]
        run("destroy", "-auto-approve")
        assert bob.list_schedules()["Schedules"] == []
        assert [group["Name"] for group in bob.list_schedule_groups()["ScheduleGroups"]] == ["default"]


def configuration(access_key_id: str, secret: str, address: str) -> str:
    """The page's own provider, for all resources."""
    block = re.search(r"```hcl\n(.*?)```", PAGE, re.DOTALL)
    assert block
    text = block[1]
    for written_so, meant in {
        '  alias      = "minute8"\n': "",
        "eu-west-1": "us-east-1",
        "var.minute8_access_key_id": f'"{access_key_id}"',
        "var.minute8_secret_access_key": f'"{secret}"',
        "https://abc.execute-api.us-east-1.amazonaws.com": address,
    }.items():
        assert written_so in text
        text = text.replace(written_so, meant)
    return _REQUIRED + text


def stored(client: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """All schedules, with lists in one order, and without what the export leaves out with a note."""
    left_out = ("ResponseMetadata", "ActionAfterCompletion")
    schedules = {}
    for listed in client.list_schedules()["Schedules"]:
        answer = client.get_schedule(Name=listed["Name"], GroupName=listed["GroupName"])
        if answer.get("StartDate", FAR) < FAR:
            del answer["StartDate"]
        schedules[listed["GroupName"], listed["Name"]] = comparable(
            {name: value for name, value in answer.items() if name not in left_out}
        )
    return schedules


def sent(value: Any) -> Any:
    """Without members that are false: the provider sends those that nobody gave."""
    if isinstance(value, dict):
        return {name: sent(member) for name, member in value.items() if member is not False}
    return [sent(member) for member in value] if isinstance(value, list) else value


def furnish(desk: Desk, client: Any) -> None:
    """Groups and schedules of every kind, and a job of Minute8's own API."""
    for group in GROUPS:
        client.create_schedule_group(**group)
    # It is past when it is exported.
    just_now = {"StartDate": int(desk.office.world.clock.now()) - 200}
    for request in (*MANY, *SCHEDULES):
        started_before = just_now if request in SCHEDULES and "StartDate" in request else {}
        client.create_schedule(**request | started_before)
    own = {"kind": "lambda", "arn": ARN, "invocation": "Event", "envelope": False}
    desk.office.alice(
        "PUT", "/v1/jobs/own", {"schedule": {"cron": "0 3 * * MON-FRI"}, "target": own, "payload": {"n": 1}}
    )
