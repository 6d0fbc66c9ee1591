"""Files that hold schedules and that `minute8 import` does not read: what they are, and what to do with them. Pure."""

from __future__ import annotations

import re
from typing import Final

_EXPORT: Final = (
    "import the schedules themselves: `minute8 import eventbridge:`, or the output of "
    "`aws scheduler get-schedule` for each"
)
_CALLS: Final = (
    "each of its entries calls an address: `minute8 jobs create NAME --cron SCHEDULE --tz ZONE --target URL`"
)
# What shows a format, its name, and the way. None looks back from each line: a million blank lines would have no end.
_FOREIGN: Final = (
    (r'resource\s+"aws_(?:scheduler_schedule|cloudwatch_event_rule)"', "Terraform", _EXPORT),
    (
        r'resource\s+"kubernetes_cron_job',
        "Terraform",
        "import the CronJobs: `kubectl get cronjobs -o yaml | minute8 import -`",
    ),
    (
        r"^START_HOURS_RANGE=|^(?:\d+|@\w+)[ \t]+\d+[ \t]+cron\.\w+[ \t]",
        "an anacrontab",
        "its periods are days: give 1 as @daily, 7 as @weekly to `minute8 jobs create NAME --cron`",
    ),
    (
        r'\A(?![\s\S]*"Targets")[\s\S]*?"Rules"\s*:\s*\[',
        "the output of `aws events list-rules`, which has no targets",
        _EXPORT,
    ),
    (
        r"^\[Timer\]",
        "a systemd timer",
        "give its OnCalendar to `minute8 jobs create --cron`: the words differ",
    ),
    (
        r"^[ \t]*kind:\s*CronWorkflow",
        "Argo's CronWorkflow",
        "it runs a workflow: give its `schedule` and `timezone` to a job whose target submits it",
    ),
    (r"^Resources:|AWSTemplateFormatVersion", "a CloudFormation template", _EXPORT),
    (
        r"^[ \t]*(?:chart|schedule_interval|dag_id)\b|from airflow",
        "an Airflow DAG",
        "give its schedule to a job whose target starts the DAG",
    ),
    (r'\A\s*\{(?:[^\n]*\n)*?[^\n]*"crons"\s*:\s*\[', "a vercel.json", _CALLS),
    (
        r"^cron:[ \t]*\n(?:\s*#.*\n)*\s*- ",
        "App Engine's cron.yaml",
        f"{_CALLS}; `minute8 preview 'every day 09:00'` says which cron that is",
    ),
    (
        r"^ID\s+LOCATION\s+SCHEDULE\b|\bname[\"']?:\s*[\"']?projects/[^/\s]+/locations/[^/\s]+/jobs/",
        "the output of `gcloud scheduler jobs`",
        _CALLS,
    ),
    (
        r"^[ \t]*every\b.*\bdo\s*(?:\|.*)?$",
        "whenever's schedule.rb",
        "import the crontab that it makes: `whenever | minute8 import - --target ARN`",
    ),
)
_KINDS_NAMED: Final = 5
_JOB_LINE: Final = re.compile(r'\s*\{[^\n]*"job_id"')
# What `aws scheduler list-schedules` prints has neither expressions nor whole targets.
_SUMMARIES: Final = re.compile(r'"Schedules"\s*:\s*\[')


def described(text: str) -> str:
    """What a text without jobs is, and the right command; empty if nobody knows."""
    if _JOB_LINE.match(text):
        return ""
    if _SUMMARIES.search(text) and '"ScheduleExpression"' not in text:
        return f"the output of `aws scheduler list-schedules`, which has no expressions: {_EXPORT}"
    for pattern, name, way in _FOREIGN:
        if re.search(pattern, text, re.MULTILINE):
            return f"{name}: {way}"
    return ""


def without_jobs(file: str, source: str, text: str) -> str:
    """Why a file that was read as `source` has no jobs: the kinds of objects that it has, if these say it."""
    if re.search(r"^(?:on|true|[\"']on[\"']):", text, re.MULTILINE) and re.search(
        r"^jobs:", text, re.MULTILINE
    ):
        return (
            f"{file} is a GitHub workflow without `on.schedule`: nothing in it fires by time; "
            "import the workflows that have one"
        )
    kinds = list(dict.fromkeys(re.findall(r"^[ \t]*-?[ \t]*kind:\s*(\w+)", text, re.MULTILINE)))
    if source == "cronjob" and "CronJob" in kinds:  # inside another object, since none is one
        outer_kinds = _named([kind for kind in kinds if kind != "CronJob"]) or "another object"
        return (
            f"{file} names CronJobs inside {outer_kinds} and has none of its own: import what renders it, "
            "such as `kubectl kustomize DIR | minute8 import -`, or `kubectl get cronjobs -o yaml` of the cluster"
        )
    inside = f"; its objects are of the kinds {_named(kinds)}" if kinds else ""
    return f"{file}, read as {source}, has no jobs{inside}; --format names another format"


def _named(kinds: list[str]) -> str:
    """The first kinds of a file, and how many more there are."""
    more = f" and {len(kinds) - _KINDS_NAMED} more" if len(kinds) > _KINDS_NAMED else ""
    return ", ".join(kinds[:_KINDS_NAMED]) + more
