"""Reading the formats of import: crontabs, CronJobs, EventBridge Scheduler, NDJSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common.ids import check_id
from common.registration.definition import Limits, parse_definition
from minute8.cli.commands.transfer import READERS, format_of
from minute8.cli.sources import foreign
from minute8.cli.sources.source_job import Defaults, SourceJob
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS
from tests.worlds import ARN

TARGET = {"kind": "lambda", "arn": ARN}
DEFAULTS = Defaults(TARGET, None)

CRONTAB = r"""
# m h dom mon dow command
SHELL=/bin/bash
MAILTO=ops@example.com
PATH=/usr/bin
*/5 * * * *  /opt/poll.sh --fast
CRON_TZ=Europe/Paris
30 2 * * 1-5 backup --to "s3://b" > /dev/null 2>&1
@daily       /opt/poll.sh --fast
@midnight    rotate
CRON_TZ=
@reboot      start
0 3 * * * mail -s report%line one%100\% done
nonsense
"""


def read(name: str, text: str, defaults: Defaults = DEFAULTS) -> list[SourceJob]:
    return list(READERS[name](text, defaults))


def test_a_crontab() -> None:
    source_jobs = read("crontab", CRONTAB)
    jobs = [source_job for source_job in source_jobs if not source_job.refusal]
    assert [(source_job.where, source_job.definition["schedule"]) for source_job in jobs] == [
        ("line 6", {"cron": "*/5 * * * *"}),
        ("line 8", {"cron": "30 2 * * 1-5", "timezone": "Europe/Paris"}),
        ("line 9", {"cron": "@daily", "timezone": "Europe/Paris"}),
        ("line 10", {"cron": "@daily", "timezone": "Europe/Paris"}),
        ("line 13", {"cron": "0 3 * * *"}),
    ]
    assert jobs[0].definition["payload"] == {
        "command": "/opt/poll.sh --fast",
        "environment": {"PATH": "/usr/bin"},
    }
    assert jobs[-1].definition["payload"]["command"] == "mail -s report"
    assert jobs[-1].definition["payload"]["stdin"] == "line one\n100% done\n"
    assert [
        (source_job.where, source_job.refusal[:7]) for source_job in source_jobs if source_job.refusal
    ] == [
        ("line 12", "@reboot"),
        ("line 14", "not a c"),
    ]


def test_the_same_command_has_the_same_id_whenever_it_is_read() -> None:
    first, second = read("crontab", "0 3 * * * backup\n"), read("crontab", "# moved\n\n15 4 * * * backup\n")
    assert first[0].job_id == second[0].job_id
    twice = read("crontab", "0 3 * * * backup\n0 4 * * * backup\n0 5 * * * other\n")
    assert len({source_job.job_id for source_job in twice}) == 3


def test_ids_of_lines_with_one_command_survive_the_removal_of_another_line() -> None:
    three = read("crontab", "0 3 * * * backup\n0 4 * * * backup\n0 5 * * * backup\n")
    two = read("crontab", "0 4 * * * backup\n0 5 * * * backup\n")
    assert [source_job.job_id for source_job in two] == [source_job.job_id for source_job in three[1:]]


@pytest.mark.parametrize(
    ("line", "cron"),
    [
        ("0 */24 * * *", "0 0 * * *"),
        ("*/60 * * * *", "0 * * * *"),
        ("*/90 * * * *", "0 * * * *"),
        ("0 0 1 */12 *", "0 0 1 1 *"),
        ("0 0 * * */7", "0 0 * * 0"),
        ("0 0 */31 * *", "0 0 1 * *"),
        ("10-20/30,5 * * * *", "10,5 * * * *"),
        ("*/20 */5 * * *", "*/20 */5 * * *"),
    ],
)
def test_steps_that_lead_out_of_their_range_are_what_cron_makes_of_them(line: str, cron: str) -> None:
    (source_job,) = read("crontab", f"{line} x")
    assert source_job.definition["schedule"] == {"cron": cron}
    is_named = any("out of its range" in note for note in source_job.notes)
    assert is_named == (cron.count("/") < line.count("/") and "," not in line)


def test_quotes_inside_of_a_variable_stay() -> None:
    (source_job,) = read("crontab", "OPTS=\"--title='Daily Report'\"\nA='b\n0 3 * * * x")
    assert source_job.definition["payload"]["environment"] == {"OPTS": "--title='Daily Report'", "A": "'b"}


@pytest.mark.parametrize("head", ["# m h dom mon dow user\tcommand\n", ""])
def test_a_system_crontabs_user_is_no_part_of_the_command(head: str) -> None:
    text = f"{head}17 * * * * root   run-parts /etc/cron.hourly\n25 6 * * *\troot\ttest -x anacron\n"
    hourly, daily = read("crontab", text)
    assert hourly.definition["payload"]["command"] == "run-parts /etc/cron.hourly"
    assert daily.definition["payload"]["command"] == "test -x anacron"
    assert "user, 'root', is left out" in daily.notes[-1]


@pytest.mark.parametrize("command", ["rooted-script --all", "backup", "mail -s report ops", "root"])
def test_a_command_that_is_called_as_a_user_is_no_column(command: str) -> None:
    (own,) = read("crontab", f"0 3 * * * {command}")
    assert own.definition["payload"]["command"] == command
    (of_mail,) = read("crontab", f"{'0 3 * * * root x'}\n{'0 4 * * * mail -s report ops'}")[1:]
    assert of_mail.definition["payload"]["command"] == "-s report ops"


def test_a_user_that_nobody_knows_is_a_column_beside_roots() -> None:
    text = "*/5 * * * * deploy /srv/poll\n30 4 * * * root certbot renew"
    assert [job.definition["payload"]["command"] for job in read("crontab", text)] == [
        "/srv/poll",
        "certbot renew",
    ]


@pytest.mark.parametrize(
    ("line", "cron", "note"),
    [
        ("-*/15 * * * * x", "*/15 * * * *", "the - before the minute"),
        ("@every_minute x", "* * * * *", ""),
        ("5/15 0 * * * x", "5/15 0 * * *", "5/15: cron refuses a step behind a single number"),
        ("0 1-9/2 */3 * * x", "0 1-9/2 */3 * *", ""),
    ],
)
def test_what_only_some_crons_take(line: str, cron: str, note: str) -> None:
    (source_job,) = read("crontab", line, Defaults(TARGET, "UTC"))
    assert source_job.definition["schedule"]["cron"] == cron
    assert len(source_job.notes) == bool(note)
    assert "; ".join(source_job.notes).startswith(note)


def test_an_anacrontab_is_no_crontab() -> None:
    """Its lines are period, delay, id and command: `@monthly 45 …` would be a command that begins with 45."""
    assert foreign.described("@monthly 45\tcron.monthly\tnice run-parts /etc").startswith("an anacrontab")
    assert foreign.described("@monthly run-parts /etc/cron.monthly") == ""


def test_a_percent_sign_is_noted() -> None:
    (source_job,) = read("crontab", "0 3 * * * date +%Y")
    assert any("percent sign" in note for note in source_job.notes)


SERVERLESS = """
service: shop
provider: {name: aws, role: !GetAtt Role.Arn}
functions:
  report:
    handler: report.run
    events:
      - http: GET /
      - schedule: rate(2 hours)
      - schedule:
          rate: ["cron(0 9 ? * MON-FRI *)", "cron(0 10 ? * SAT *)"]
          enabled: false
          input: {all: true}
          inputPath: $.a
  other:
    handler: other.run
    events: [{schedule: "${self:custom.rate}"}]
"""


def test_a_serverless_yml() -> None:
    assert format_of("serverless.yml", SERVERLESS) == "serverless"
    every, weekdays, saturday, other = read("serverless", SERVERLESS)
    assert every.definition["schedule"] == {"every": "2h"}
    assert weekdays.definition["schedule"] == {"cron": "0 9 ? * MON-FRI *", "dialect": "eventbridge"}
    assert (weekdays.suspended, weekdays.definition["payload"]) == (True, {"all": True})
    assert "inputPath is left out" in weekdays.notes
    assert len({every.job_id, weekdays.job_id, saturday.job_id}) == 3
    assert "variable" in other.refusal


@pytest.mark.parametrize(
    ("rate", "schedule"),
    [
        ("rate( 1 day )", {"every": "1d"}),
        ("at(2027-06-01T10:00:00)", {"at": "2027-06-01T10:00:00", "timezone": "UTC"}),
        ("rate(2 months)", None),
    ],
)
def test_each_expression_of_aws(rate: str, schedule: dict[str, str] | None) -> None:
    (source_job,) = read("serverless", f"functions: {{a: {{events: [{{schedule: '{rate}'}}]}}}}")
    assert source_job.definition.get("schedule") == schedule
    assert bool(source_job.refusal) == (schedule is None)


CRONJOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: billing}
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Paris
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 120
  jobTemplate:
    spec:
      backoffLimit: 2
      template: {spec: {containers: [{name: main, image: report:1, args: [--all]}, {name: proxy, image: p}]}}
---
apiVersion: v1
kind: Service
metadata: {name: not-a-job}
---
apiVersion: v1
kind: List
items:
- kind: CronJob
  metadata: {name: old}
  spec:
    schedule: "CRON_TZ=Asia/Tokyo 0 9 * * *"
    suspend: true
    concurrencyPolicy: Replace
    jobTemplate: {spec: {template: {spec: {containers: [{name: main, image: old:1}]}}}}
- kind: CronJob
  metadata: {name: broken}
  spec: {schedule: "0 9 * * *"}
"""


WORKFLOW = """
name: Nightly build
on:
  push: {}
  schedule:
    - cron: "30 5 * * 1-5"
    - cron: "0 */24 * * *"
jobs: {}
"""


def test_a_github_workflow() -> None:
    assert format_of(".github/workflows/nightly.yml", WORKFLOW) == "github"
    first, second = read("github", WORKFLOW)
    assert first.definition["schedule"] == {"cron": "30 5 * * 1-5", "timezone": "UTC"}
    assert second.definition["schedule"]["cron"] == "0 0 * * *"
    assert first.definition["payload"] == {"workflow": "Nightly build"}
    assert first.job_id.startswith("Nightly-build-") and first.job_id != second.job_id


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('resource "aws_scheduler_schedule" "x" {}', "Terraform"),
        ("[Unit]\n\n[Timer]\nOnCalendar=daily\n", "systemd"),
        ("apiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\n", "Argo"),
        ('{"crons": [{"path": "/api/x", "schedule": "0 10 * * *"}]}', "a vercel.json: each"),
        ('{\n  "$schema": "x",\n  "crons": [\n    {"path": "/", "schedule": "0 10 * * *"}]}', "vercel.json"),
        ("cron:\n- description: x\n  url: /tasks\n  schedule: every day 09:00\n", "App Engine's cron.yaml"),
        (
            "ID  LOCATION  SCHEDULE (TZ)  TARGET_TYPE  STATE\nnight  eu-1  0 9 * * * (Etc/UTC)  HTTP  ENABLED\n",
            "`gcloud scheduler jobs`: each",
        ),
        (
            "---\nhttpTarget: {uri: x}\nname: projects/p/locations/l/jobs/night\nschedule: 0 9 * * *\n",
            "`gcloud scheduler jobs`: each",
        ),
        ("every 1.day, at: '4:30 am' do\n  runner 'A.b'\nend\n", "`whenever | minute8 import -"),
        ('{"Schedules": [{"Name": "a", "Arn": "arn:…", "Target": {"Arn": "…"}}]}', "list-schedules"),
    ],
)
def test_a_file_that_is_not_read_is_named_with_the_right_command(text: str, words: str) -> None:
    assert words in foreign.described(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"job_id": "a", "payload": {"crons": [1], "name": "projects/p/locations/l/jobs/j"}}\n',
        CRONTAB,
        CRONJOB,
        WORKFLOW,
        SERVERLESS,
    ],
)
def test_a_file_that_is_read_is_not_taken_for_another(text: str) -> None:
    assert foreign.described(text) == ""


@pytest.mark.parametrize("key", ["on", '"on"'])
def test_a_workflow_without_a_schedule_is_named(key: str) -> None:
    text = f"name: Build\n{key}:\n  push: {{}}\njobs: {{}}\n"
    words = foreign.without_jobs("b.yml", format_of("b.yml", text), text)
    assert "is a GitHub workflow without `on.schedule`" in words


def test_the_kinds_of_a_file_without_jobs_are_named() -> None:
    text = "kind: Deployment\n---\nkind: Service\n"
    assert "Deployment, Service" in foreign.without_jobs("a.yaml", "cronjob", text)
    many = "".join(f"kind: Kind{number}\n---\n" for number in range(300))
    assert foreign.without_jobs("a.yaml", "cronjob", many).count("Kind") == 5
    assert "Kind4 and 295 more" in foreign.without_jobs("a.yaml", "cronjob", many)


def test_a_template_is_refused_with_its_line() -> None:
    """As of public manifests with a placeholder in the place of `image: …`."""
    text = "kind: CronJob\nspec:\n  IMAGE_OF_REPORT\n  policy: Always\n"
    (refused,) = read("cronjob", text)
    words = "not YAML: line 4: mapping values are not allowed here; of a template, import what it renders"
    assert refused.refusal == words


@pytest.mark.parametrize(
    ("text", "outer"),
    [
        (
            "kind: ClusterPolicy\nspec:\n  match:\n    kinds: [CronJob]\n    - kind: CronJob\n",
            "ClusterPolicy",
        ),
        ("kind: Kustomization\npatches:\n- target:\n    kind: CronJob\n    name: x\n", "Kustomization"),
    ],
)
def test_a_file_that_only_names_cronjobs_says_what_to_render(text: str, outer: str) -> None:
    words = foreign.without_jobs("a.yaml", "cronjob", text)
    assert f"names CronJobs inside {outer}" in words and "kubectl kustomize" in words


def test_a_schedule_without_its_arn_needs_a_target_with_an_account() -> None:
    export = schedule("rate(1 hour)")
    assert not read("eventbridge", json.dumps(export), Defaults(None, "UTC"))[0].refusal
    export["Target"] |= {"Arn": "arn:aws:scheduler:::aws-sdk:sqs:sendMessage", "Input": "{}"}
    (refused,) = read("eventbridge", json.dumps(export), Defaults(None, "UTC"))
    assert refused.refusal.startswith("Arn: missing, and Target.Arn arn:aws:scheduler:::aws-sdk")
    assert "get-schedule" in refused.refusal
    export["Arn"] = "arn:aws:scheduler:eu-west-1:123456789012:schedule/default/nightly"
    assert "Arn: missing" not in read("eventbridge", json.dumps(export), Defaults(None, "UTC"))[0].refusal


def test_what_kubernetes_takes_is_bounded_and_rounded() -> None:
    document = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "@every 1.5h"
  startingDeadlineSeconds: 2000000
  jobTemplate: {spec: {template: {spec: {containers: [{name: main}]}}}}
"""
    (source_job,) = read("cronjob", document)
    assert source_job.definition["schedule"] == {"every": 5400}
    assert source_job.definition["start_deadline_s"] == 1_209_600
    assert any("becomes 1209600, the longest" in note for note in source_job.notes)


@pytest.mark.parametrize("command", ["'';!", "日本", "x" * 500, "-rf /", "a/b/c #d", "..", "ü"])
def test_any_command_gives_a_valid_id(command: str) -> None:
    (source_job,) = read("crontab", f"0 3 * * * {command}")
    check_id("job_id", source_job.job_id, 128)


def test_a_crontab_needs_a_target() -> None:
    assert "--target" in read("crontab", "0 3 * * * x", Defaults())[0].refusal


def test_a_date_that_never_comes_is_a_paused_job() -> None:
    """People write 31 February for what is started by hand."""
    text = CRONJOB.replace("CRON_TZ=Asia/Tokyo 0 9 * * *", "0 0 31 2 *").replace("    suspend: true\n", "")
    job = read("cronjob", text)[1]
    assert (job.suspended, job.definition["schedule"]) == (True, {"cron": "0 0 29 2 *"})
    assert any("'0 0 31 2 *' never comes" in note and "jobs run" in note for note in job.notes)
    by_line = [
        read("crontab", f"{cron} x")[0].suspended
        for cron in ("0 0 31 4,6 *", "0 0 30 2 *", "0 0 31 * *", "0 0 30 2 1")
    ]
    assert by_line == [True, True, False, False]


def test_steps_of_a_cronjob_that_lead_out_of_their_range_are_converted_with_a_note() -> None:
    job = read("cronjob", CRONJOB.replace('"30 2 * * *"', '"0 */24 * * *"'))[0]
    assert job.definition["schedule"]["cron"] == "0 0 * * *"
    assert any(note.startswith("*/24: cron takes the first value") for note in job.notes)


def test_cronjobs() -> None:
    report, old, broken = read("cronjob", CRONJOB)
    assert (report.where, report.job_id, report.suspended) == ("billing/report", "billing.report", False)
    assert report.definition == {
        "name": "billing/report",
        "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"},
        "target": TARGET,
        "payload": {"container": {"name": "main", "image": "report:1", "args": ["--all"]}},
        "overlap": "skip",
        "start_deadline_s": 120,
        "retry": {"max_attempts": 3},
    }
    assert report.notes == ("containers.1 is left out: only the first container is taken",)
    assert (old.job_id, old.suspended) == ("old", True)
    assert old.definition["schedule"] == {"cron": "0 9 * * *", "timezone": "Asia/Tokyo"}
    assert "Replace" in old.notes[0]
    assert "it has no jobTemplate: of a patch or an overlay, import what `kubectl" in broken.refusal
    template = "kind: Template\nobjects:\n" + CRONJOB.partition("items:\n")[2]
    assert [job.job_id for job in read("cronjob", template)] == ["old", ""]
    assert "not YAML" in read("cronjob", "a: [")[0].refusal
    assert read("cronjob", "- 1\n")[0].refusal


def schedule(expression: str, **more: Any) -> dict[str, Any]:
    source_fields = {
        "Name": "nightly",
        "ScheduleExpression": expression,
        "Target": {"Arn": ARN, "RoleArn": "arn:aws:iam::1:role/r"},
    }
    return source_fields | more


@pytest.mark.parametrize(
    ("source_fields", "expected"),
    [
        (schedule("cron(30 2 * * ? *)"), {"cron": "30 2 * * *", "timezone": "UTC"}),
        (
            schedule("cron(0 9 ? * 2-6 *)", ScheduleExpressionTimezone="Europe/Paris"),
            {"cron": "0 9 * * 1-5", "timezone": "Europe/Paris", "dst": "eventbridge"},
        ),
        (
            schedule("cron(0 9 ? * MON 2027)", ScheduleExpressionTimezone="Europe/Paris"),
            {
                "cron": "0 9 ? * MON 2027",
                "timezone": "Europe/Paris",
                "dialect": "eventbridge",
                "dst": "eventbridge",
            },
        ),
        (
            schedule("cron(0 9 L-3 * ? *)"),
            {"cron": "0 9 L-3 * ? *", "timezone": "UTC", "dialect": "eventbridge"},
        ),
        (schedule("cron(0 9 ? * MON-FRI *)"), {"cron": "0 9 * * MON-FRI", "timezone": "UTC"}),
        (schedule("cron(0 9 ? * 2#1 *)"), {"cron": "0 9 * * 1#1", "timezone": "UTC"}),
        (schedule("cron(0 9 ? * 6L *)"), {"cron": "0 9 * * L5", "timezone": "UTC"}),
        (schedule("cron(0 9 L * ? *)"), {"cron": "0 9 L * *", "timezone": "UTC"}),
        (schedule("rate(5 minutes)"), {"every": "5m"}),
        (
            schedule("rate(1 hour)", StartDate="2026-01-01T00:30:00+01:00"),
            {"every": "1h", "anchor": "2025-12-31T23:30:00Z", "start_at": "2025-12-31T23:30:00Z"},
        ),
        (
            schedule("at(2026-12-01T03:00:00)", ScheduleExpressionTimezone="Asia/Tokyo"),
            {"at": "2026-12-01T03:00:00", "timezone": "Asia/Tokyo"},
        ),
        (
            schedule("rate(1 days)", FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}),
            {"every": "1d", "jitter_s": 899},
        ),
    ],
)
def test_eventbridge_schedules(source_fields: dict[str, Any], expected: dict[str, Any]) -> None:
    (source_job,) = read("eventbridge", json.dumps(source_fields), Defaults())
    # The tenant's default spread would delay a cron.
    undelayed = {"spread_s": 0} if "cron" in expected else {}
    assert source_job.definition["schedule"] == expected | undelayed
    assert source_job.definition["target"] == {
        "kind": "lambda",
        "arn": ARN,
        "invocation": "Event",
        "schedule_arn": "arn:aws:scheduler:us-east-1:123456789012:schedule/default/nightly",
    }
    parse_definition(source_job.definition, Limits(payload_formats=PAYLOAD_FORMATS))


def test_an_eventbridge_schedule_with_all_that_it_can_have() -> None:
    target = {
        "Arn": "arn:aws:sqs:us-east-1:123456789012:q",
        "Input": '{"n": 1}',
        "RetryPolicy": {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 3600},
        "DeadLetterConfig": {"Arn": "arn:aws:sqs:us-east-1:123456789012:dead"},
    }
    written = schedule(
        "rate(5 minutes)", GroupName="billing", State="DISABLED", Description="Bills", Target=target
    )
    (source_job,) = read("eventbridge", json.dumps([written]), Defaults())
    assert (source_job.job_id, source_job.suspended) == ("billing..nightly", True)
    assert source_job.definition["dead_letter"] == target["DeadLetterConfig"]["Arn"]  # type: ignore[index]
    assert source_job.definition["target"] == {
        "kind": "sqs",
        "arn": target["Arn"],
        "schedule_arn": "arn:aws:scheduler:us-east-1:123456789012:schedule/billing/nightly",
    }
    assert source_job.definition["payload"] == '{"n": 1}'
    assert source_job.definition["retry"] == {"max_attempts": 4, "max_age_s": 3600}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        json.dumps(schedule("cron(0 9 ? * MON 2200)")),
        json.dumps(schedule("cron(0 9 1 * MON *)")),
        json.dumps(schedule("every(5 minutes)")),
        json.dumps(schedule("rate(5 fortnights)")),
        json.dumps(schedule("cron(0 9 *)")),
        json.dumps(schedule("rate(5 minutes)", Target={"Arn": "arn:aws:ecs:us-east-1:1:cluster/c"})),
        json.dumps({"Name": "x"}),
        json.dumps({"Names": "x"}),
        json.dumps([7]),
        '{"n": 1}\n{',
    ],
)
def test_a_source_without_an_equivalent_is_refused(text: str) -> None:
    assert read("eventbridge", text, Defaults())[0].refusal


def test_ndjson() -> None:
    lines = ['{"job_id": "a", "schedule": {"every": 60}, "state": "paused"}', "", "{", "[]", '{"job_id": 7}']
    a, *refused = read("ndjson", "\n".join(lines))
    assert (a.where, a.job_id, a.suspended) == ("line 1", "a", True)
    assert a.definition == {"schedule": {"every": 60}, "target": TARGET}
    assert [(source_job.where, bool(source_job.refusal)) for source_job in refused] == [
        ("line 3", True),
        ("line 4", True),
        ("line 5", True),
    ]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("jobs.yaml", "kind: CronJob", "cronjob"),
        ("-", "0 3 * * * x", "crontab"),
        ("-", '{"job_id": "a"}', "ndjson"),
        ("-", '[{"ScheduleExpression": "rate(1 day)"}]', "eventbridge"),
        ("crontab", "", "crontab"),
    ],
)
def test_a_format_is_guessed(name: str, text: str, expected: str) -> None:
    assert format_of(name, text) == expected
