"""What tenants, targets and files say is data on a terminal, in every command; JSON and exports keep it as it is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.planning.execution import Execution
from common.platform.dead_letters import DeadLetters
from common.platform.findings import failed
from common.platform.planning_checks import PlanningState
from common.runs.outcome import Outcome
from common.storage import aws, keys
from common.tenants.audit import Audit
from common.tenants.audit_chain import SEALING
from common.truth.contradiction import Contradiction, FoundContradictions, Subject
from common.truth.truth import Truth
from minute8 import cli
from minute8.cli.commands import audit_verify, check, manual, report, restored
from minute8.cli.doctor import command
from minute8.cli.output import console, say, table, visible
from minute8.client import Client
from scheduler.sealing import Sealer
from tests.api.dead_letters import URL
from tests.cli.conftest import OBEYED, Desk
from tests.docs.test_commands import COMMANDS
from tests.scheduler_handler import go_on
from tests.worlds import ARN, at, job

# Clear the screen, set the title, write the clipboard; C1's own CSI; DEL; letters read backwards; isolates; line ends,
# with what would be a line of its own behind each.
CONTROLS = "x\x1b[2J\x1b]0;t\x07\x1b]52;c;ZXZpbA==\x07\x9b31m\x7f\u202elive\u2066\u061c[red]:boom:"
HOSTILE = f"{CONTROLS}\nforged\rforged\u2028forged"
# One command a line; `!` before those that certainly print a hostile text.
OF_THE_TENANT = f"""
jobs create made --cron '0 9 * * *' --target {ARN} --name HOSTILE
jobs list
!jobs list --state paused
!jobs show held
jobs pause made --note HOSTILE
jobs resume made
jobs run report
jobs skip report --note HOSTILE
jobs next report
jobs unskip report
backfill report --from 2026-11-21T00:00:00Z --to 2026-11-21T01:00:00Z --yes --json
jobs backfills report
jobs cancel-backfill report BACKFILL --note HOSTILE
jobs edit held
preview HOSTILE
subscriptions put tested --target https://hooks.example.com/x
subscriptions test tested --no-wait
runs call-back running --url CALLBACK --token TOKEN --text HOSTILE
!runs show WORK
webhook-secret
jobs explain report 2026-11-21T03:15:00Z
!runs list report
!runs show RUN
runs watch report --looks 1
runs summary report
runs permits crm
runs erase RUN --yes
runs retry RUN
runs end OTHER --note HOSTILE --yes
runs cancel NEXT --note HOSTILE
!overview
stats
expected report
upcoming
density
clock-changes
failures
!failures --groups
failures mute report FINGERPRINT --note HOSTILE
!failures muted
failures unmute report FINGERPRINT
calendars put days --date 2026-12-24
calendars list
calendars show days
calendars delete days
secrets put token
secrets list
secrets delete token
subscriptions put hook --target https://hooks.example.com/x
subscriptions list
subscriptions show hook
subscriptions delete hook
keys create --name HOSTILE
!keys list
keys revoke KEY
quotas show
!audit
!export
!export --format yaml
!tenants export
tenants import OF_FILE --dry-run
!import FILE
import FILE --dry-run
apply FILE --yes
jobs pause-all --all --note HOSTILE --yes
jobs run-all --all --yes
jobs resume-all --all --yes
runs retry-all --since 1h --yes
runs cancel-all --note HOSTILE --yes
jobs delete made --yes
jobs delete-all --all --yes
"""
OF_THE_PLATFORM = """
tenants create carol --name HOSTILE
!tenants list
!tenants show carol
tenants edit carol --name HOSTILE
tenants suspend carol --note HOSTILE
!tenants show carol
tenants resume carol
tenants overview
tenants health alice
quotas set carol jobs=5
keys create carol --name HOSTILE
!keys list carol
operator-keys create --name HOSTILE
!operator-keys list
operator-keys revoke KEY
!audit carol
blocks add '*.evil.example.com' --note HOSTILE
!blocks list
blocks release '*.evil.example.com'
planning
unrecorded list
unrecorded run --all --yes
dead-letters list
!dead-letters list executions
!dead-letters redrive executions
dead-letters discard executions --yes
tenants rebuild-runs alice
tenants delete carol --yes
tenants deletion carol
"""
# With AWS credentials.
OF_AWS = """
!doctor
!check
restored --table runs --table jobs --to 40m
!report
!redrive --dry-run
!redrive
!audit verify
"""
# They tell of something wrong.
END_WITH_A_REFUSAL = {"import", "tenants import", "apply", "preview", "doctor", "check", "audit verify"}


@pytest.fixture
def hostile(desk: Desk, tmp_path: Path) -> Desk:
    """A terminal in a world that says something hostile wherever a text is free."""
    world, office = desk.office.world, desk.office
    refusal = Outcome(ok=False, permanent=True, error_type="E", error=HOSTILE, log_tail=HOSTILE)
    world.target.answer = lambda event: Outcome(ok=True) if "callback" in event["minute8"] else refusal
    for name, schedule in (("report", "*/5 * * * *"), ("held", "0 2 * * *")):
        body = job(cron=schedule, timezone="Europe/Paris", name=HOSTILE, payload={"p": HOSTILE})
        assert office.alice("PUT", f"/v1/jobs/{name}", body).status == 201
    assert office.alice("POST", "/v1/jobs/held/pause", {"note": HOSTILE}).status == 200
    office.alice("PUT", "/v1/jobs/work", job(every=86_400, completion="callback", name=HOSTILE))
    world.run_until("2026-11-21T03:22:00Z", ticks=True)
    office.dead_letters.put("executions-dead", HOSTILE, "{}")
    office.dead_letters.reasons["{}"] = HOSTILE
    world.unrecorded.add([Execution("alice", "report", at("2026-11-21T03:05:00Z"), 0, 1)], 0)
    desk.environment["MINUTE8_KEY"] = office.alice_admin.key or ""
    desk.environment["TENANTS_TABLE"] = "test-nothing"
    return desk


def found_by_aws(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with the stage says something hostile; its tables and dead letters are those of the world."""
    world, dead_letters = desk.office.world, desk.office.dead_letters
    logs = SimpleNamespace(
        get_paginator=lambda _: SimpleNamespace(paginate=lambda **_: [{"events": [{"message": HOSTILE}]}]),
        exceptions=SimpleNamespace(ResourceNotFoundException=LookupError),
    )
    deployment = SimpleNamespace(
        truth=lambda: Truth(world.tables, world.queue, world.clock),
        planning=lambda: PlanningState(world.table("due"), world.clock, "test"),
        tables=lambda: world.tables,
        executions=lambda: world.queue,
        client=lambda _: logs,
        dead_letters=lambda: DeadLetters(dead_letters, URL),  # type: ignore[arg-type]
        tenants_table=lambda: world.table("tenants"),
        due_table=lambda: world.table("due"),
        named=lambda part="": f"minute8-test-{part}",
        stage="test",
        region="us-east-1",
        account="1",
        exists=lambda: True,
        clock=world.clock,
    )
    for module in (check, restored, report, audit_verify, command):
        monkeypatch.setattr(module, "connect", lambda *_: deployment)
    monkeypatch.setattr(command, "examine", lambda *_: [failed(HOSTILE, HOSTILE)])
    monkeypatch.setattr(dead_letters, "get_queue_url", lambda QueueName: {"QueueUrl": URL}, raising=False)
    monkeypatch.setattr(aws, "sqs", lambda: dead_letters)
    dead_letters.put("executions-dead", HOSTILE)
    world.table("jobs").put({**keys.job("bob", HOSTILE), "v": HOSTILE})
    world.clock.sleep(3_600)
    assert go_on(world, Sealer(world.tables, world.clock).steps, SEALING).problems == []
    audit = Audit(world.table("tenants"))
    sealed = next(iter(audit.stored("alice", "0", "~")))
    audit.table.put({**sealed, "sk": f"{sealed['sk']}{HOSTILE}"})
    subject = Subject("job", HOSTILE)
    FoundContradictions(world.table("due")).put(subject, [Contradiction(HOSTILE, subject, HOSTILE)], [], 0)


def play(desk: Desk, script: str, tmp_path: Path, **words: str) -> set[str]:
    """The names of the commands that were run; each succeeded, and Desk looked at what each printed."""
    played, wrong = set(), []
    (tmp_path / "jobs.ndjson").write_text(
        json.dumps({"job_id": "of-a-file", "name": HOSTILE, **job(cron="0 5 * * *", tags=[CONTROLS])}) + "\n"
        + json.dumps({"job_id": "refused", HOSTILE: 1, **job(cron="0 5 * * *")}) + "\n"
    )  # fmt: skip
    (tmp_path / "tenant.ndjson").write_text(desk("tenants", "export").out)
    words |= {"OF_FILE": str(tmp_path / "tenant.ndjson")}
    words |= {"HOSTILE": HOSTILE, "FILE": str(tmp_path / "jobs.ndjson")}
    for line in script.strip().splitlines():
        command = [words.get(word, word) for word in shlex.split(line.removeprefix("!"))]
        name = max(
            (name for name in COMMANDS if line.removeprefix("!").startswith(name)), key=len, default=""
        )
        played.add(name)
        done = desk(*command, stdin="correct horse\n")
        if name == "jobs backfills":
            words["BACKFILL"] = desk(*command, "--json").json[0]["backfill_id"]
        printed = "".join((done.out + done.err).split())  # a cell may be folded
        shows = "u{202e}live" in printed or "\\u202elive" in printed.lower()
        rows = [] if "yaml" in line else (done.out + done.err).splitlines()  # it folds long texts
        forged = [row for row in rows if row.startswith("forged")]
        refused = done.code and name not in END_WITH_A_REFUSAL
        if refused or forged or (line.startswith("!") and not shows):
            wrong.append((line, done))
    assert not wrong, "\n".join(
        f"{line} {done.code} {done.out[:300]!r} {done.err[:150]!r}" for line, done in wrong
    )
    return played


def test_no_command_prints_what_a_terminal_obeys(
    hostile: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = hostile("jobs", "run", "work", "--json").json["execution_id"]
    hostile.office.world.deliver()
    failure = hostile("failures", "--groups", "--json").json[0]["fingerprint"]
    failed_run = hostile("runs", "list", "report", "--status", "failed", "--json").json[0]["execution_id"]
    waiting, other = (hostile("jobs", "run", "report", "--json").json["execution_id"] for _ in range(2))
    key = next(key["key_id"] for key in hostile("keys", "list", "--json").json if key["name"] == "spare")
    monkeypatch.setattr(manual, "Client", lambda url, key: Client(url, key, transport=hostile.transport))
    hostile.environment["EDITOR"] = "sed -i 's/0 2/0 3/'"
    played = play(
        hostile,
        OF_THE_TENANT,
        tmp_path,
        FINGERPRINT=failure,
        KEY=key,
        RUN=failed_run,
        NEXT=waiting,
        OTHER=other,
        WORK=work,
        CALLBACK=f"https://api.test/v1/runs/{work}/callback",
        TOKEN=hostile.office.world.target.calls[-1][1]["callback"]["token"],
    )
    del hostile.environment["MINUTE8_KEY"]
    hostile.environment["MINUTE8_OPERATOR_KEY"] = hostile.office.operator.key or ""
    key = next(
        key["key_id"] for key in hostile("operator-keys", "list", "--json").json if key["name"] == "spare"
    )
    played |= play(hostile, OF_THE_PLATFORM, tmp_path, KEY=key)
    found_by_aws(hostile, monkeypatch)
    played |= play(hostile, OF_AWS, tmp_path)
    assert set(COMMANDS) <= played


def test_json_and_exports_say_exactly_what_was_written(hostile: Desk) -> None:
    assert hostile("jobs", "show", "held", "--json").json["name"] == HOSTILE
    assert {json.loads(line)["name"] for line in hostile("export").out.splitlines()} == {HOSTILE}


def test_all_that_the_command_prints_goes_through_one_function() -> None:
    """The keys that it makes and its own version are printed as they are."""
    ways = re.compile(
        r"typer\.(echo|confirm)\(|\bConsole\(|sys\.stdout\.write|\bprint\((?<!\.print\()|rich\.print"
    )
    lines = {
        (path.name, line.strip())
        for path in Path(cli.__path__[0]).rglob("*.py")
        for line in path.read_text().splitlines()
        if path.name != "output.py" and ways.search(line)
    }
    assert {
        name for name, line in lines if not re.search(r"key|secret|VERSION|answer_line|visible", line)
    } == set()


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "\x9b", "\u202e", "\u2066", "\x7f", "a\tb", "é 😀 \u200d", "a\nb", "a\rb", "a\u2028b"]
)
def test_a_text_is_shown_in_one_line_and_not_obeyed(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    console().print(text)
    console().print(table(("A", "B"), [("x", text)]))
    say(text)
    printed = capsys.readouterr()
    assert not any(OBEYED.search(shown) for shown in (visible(text), printed.out, printed.err))
    assert (visible(text) == text) == (not OBEYED.search(text) and not {"\n", "\t"} & set(text))
    assert (len(printed.out.splitlines()), len(printed.err.splitlines())) == (3, 1)


def test_a_files_hostile_words_are_data(hostile: Desk, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("jobs: [\x85\u202e")
    refused = hostile("apply", str(tmp_path / "x.yaml"))
    assert refused.code == 1 and visible("\u202e") in refused.err
