"""docs/idle-cost.md: each line is computed from prices, the requests of an idle tick, and bytes of a batch's log."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO

import pytest
import yaml

from common import telemetry
from common.config import config
from minute8.canary.handler import JOB_ID, TENANT, line
from minute8.cli.doctor.canary import definition
from minute8.cli.doctor.inventory import FEEDS
from scheduler import handler
from scripts.cloudwatch.alarms import metrics_of
from scripts.measure.prices import PRICES
from scripts.measure.result import kept
from scripts.parameters import DEFAULTS
from tests.docs.test_docs import ROOT
from tests.scheduler_handler import serve
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import ARN, make_world

DAYS = 30.4
TICKS = round(DAYS * 144)
# Lambda keeps five long polls of 20 s open for each queue.
POLLS = round(DAYS * 86_400 / 20) * 5
# Assumed, all more than the embedded AWS shows.
TICK_S, TICK_LOG_BYTES = 0.5, 2_500
CANARY_S, CANARY_BATCH_S = 0.05, 0.3
CANARY_RUNS = round(DAYS * 1_440)
# Of the lateness, of how the canary's runs end, of the service level, and the canary's own.
CANARY_METRICS = 5
# The notifier's rounds. Assumed: one without subscriptions takes a tenth of a second; tests/notices counts its request.
ROUNDS, ROUND_S = round(DAYS * 1_440), 0.1

# A month, for all of an account: https://aws.amazon.com/cloudwatch/pricing/
FREE = {
    "dashboards": 3,
    "alarms: metrics that they read": 10,
    "metrics of the tick": 6,
    "metrics of the canary's runs": 4,
}
# CloudWatch adds so much to each event: https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html
EVENT_BYTES = 26
# Assumed: platform.start and platform.report in JSON, as AWS's documents show them.
PLATFORM_BYTES = 155 + 290 + 2 * EVENT_BYTES
# Of the tables' units that do not follow the load, as serverless.yml has them.
LITTLE = 5
HOURS = 730
MILLION = 1_000_000


def idle_tick() -> Counter[str]:
    """The requests to DynamoDB of a tick, as the handler runs it, when there is nothing to do."""
    db = MemoryDynamoDB()
    world = make_world(db, "2026-11-21T04:38:00Z")
    requests: Counter[str] = Counter()
    db.before = lambda name: requests.update([name])
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()):
        serve(world, patch)
        for _ in range(4):
            requests.clear()
            handler.handle({}, None)
            world.clock.sleep(600)
    return requests


def canary_run() -> tuple[float, float]:
    """The reads and the writes of a run of the canary."""
    db = MemoryDynamoDB()
    world = make_world(db, "2026-11-21T03:12:00Z")
    world.registry.put(TENANT, JOB_ID, definition(ARN))
    world.run_until("2026-11-21T04:10:00Z", ticks=True)
    requests: Counter[str] = Counter()
    db.before = lambda name: requests.update([name])
    before = len(world.target.calls)
    world.run_until("2026-11-21T04:19:30Z")  # no tick is left out: the one of 4:18 plans from 4:20 on
    runs = len(world.target.calls) - before
    assert runs == 9
    writes = requests["put_item"] + requests["update_item"]
    return (requests.total() - writes) / runs, writes / runs


def tick_metrics() -> int:
    """How many metrics an idle tick writes: the others have a value in few hours."""
    printed = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        serve(make_world(MemoryDynamoDB(), "2026-11-21T04:38:00Z"), patch)
        handler.handle({}, None)
    emitted = [json.loads(line).get("_aws") for line in printed.getvalue().splitlines()]
    return len(
        {metric["Name"] for each in emitted if each for metric in each["CloudWatchMetrics"][0]["Metrics"]}
    )


def alarms() -> tuple[int, int]:
    """The metrics that the alarms read, each of which is paid for, and the composite alarms."""
    declared = yaml.safe_load((ROOT / "deploy" / "alarms.yml").read_text())["Resources"].values()
    resources = [alarm for alarm in declared if alarm.get("Condition") != "HasRunsExport"]
    single = [alarm["Properties"] for alarm in resources if alarm["Type"] == "AWS::CloudWatch::Alarm"]
    return sum(len(metrics_of(alarm)) for alarm in single), len(resources) - len(single)


def dashboards() -> int:
    """How many there are."""
    resources = yaml.safe_load((ROOT / "deploy" / "dashboards.yml").read_text())["Resources"].values()
    return sum(resource["Type"] == "AWS::CloudWatch::Dashboard" for resource in resources)


def lines() -> dict[str, tuple[float, float]]:
    """Each cost -> its quantity a month, and its price."""
    requests = idle_tick()
    writes = sum(count for name, count in requests.items() if name in ("put_item", "update_item"))
    reads = requests.total() - writes
    gb_s = TICKS * TICK_S * DEFAULTS["schedulerMemoryMb"] / 1024
    watched, composite = alarms()
    round_gb_s = ROUNDS * ROUND_S * DEFAULTS["notifierMemoryMb"] / 1024
    return {
        "alarms: metrics that they read": (watched, PRICES["cloudwatch_alarm_month"]),
        "dashboards": (dashboards(), PRICES["cloudwatch_dashboard_month"]),
        "metrics of the tick": (tick_metrics(), PRICES["cloudwatch_metric_month"]),
        "alarms of two windows": (composite, PRICES["cloudwatch_composite_alarm_month"]),
        "polls of the three queues": (POLLS * len(FEEDS), PRICES["sqs_request"]),
        "reads of the ticks": (TICKS * reads, PRICES["dynamodb_read_unit"]),
        "GB-seconds of the ticks": (gb_s, PRICES["lambda_gb_s_arm64"]),
        "writes of the ticks": (TICKS * writes, PRICES["dynamodb_write_unit"]),
        "GB of logs of the ticks": (TICKS * TICK_LOG_BYTES / 1e9, PRICES["cloudwatch_logs_gb"]),
        "invocations of the ticks": (TICKS, PRICES["lambda_request"]),
        "GB-seconds of the notifier": (round_gb_s, PRICES["lambda_gb_s_arm64"]),
        "invocations of the notifier": (ROUNDS, PRICES["lambda_request"]),
        "reads of the notifier": (ROUNDS, PRICES["dynamodb_read_unit"]),
        **canary_lines(DEFAULTS["executorMemoryMb"]),
    }


def canary_lines(executor_mb: int) -> dict[str, tuple[float, float]]:
    """What the canary costs: a run a minute, alone in its batch."""
    reads, writes = canary_run()
    gb_s = CANARY_RUNS * (CANARY_BATCH_S * executor_mb + CANARY_S * 128) / 1024
    log_bytes = metrics_bytes(1) + len(line("prod", "2026-11-21T03:12:00Z", 1.8e9)) + EVENT_BYTES
    return {
        "metrics of the canary's runs": (CANARY_METRICS, PRICES["cloudwatch_metric_month"]),
        "GB-seconds of the canary's runs": (gb_s, PRICES["lambda_gb_s_arm64"]),
        "writes of the canary's runs": (CANARY_RUNS * writes, PRICES["dynamodb_write_unit"]),
        # It is sent with nine others, received and deleted alone.
        "messages of the canary's runs": (CANARY_RUNS * 2.1, PRICES["sqs_request"]),
        "GB of logs of the canary's runs": (CANARY_RUNS * log_bytes / 1e9, PRICES["cloudwatch_logs_gb"]),
        "invocations of the canary's runs": (CANARY_RUNS * 2, PRICES["lambda_request"]),
        "reads of the canary's runs": (CANARY_RUNS * reads, PRICES["dynamodb_read_unit"]),
    }


def test_the_page_says_what_each_line_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGE", "prod")
    page = (ROOT / "docs" / "idle-cost.md").read_text()
    worked_out = lines()
    for line_name, (amount, price) in worked_out.items():
        row = (
            f"| {line_name} | {amount:,.4g} | {amount * price:.3f} |"
            if amount < 1
            else (f"| {line_name} | {amount:,.0f} | {amount * price:.3f} |")
        )
        assert row in page, row
    total = sum(amount * price for amount, price in worked_out.values())
    assert f"| **all** | | **{total:.2f}** |" in page, total
    free = sum(
        min(worked_out[line_name][0], most) * worked_out[line_name][1] for line_name, most in FREE.items()
    )
    assert f"pays ${free:.2f} less: ${total - free:.2f}." in page
    assert f"${PRICES['dynamodb_pitr_gb_month']:.2f}" in page
    assert f"${PRICES['dynamodb_gb_month']:.2f}" in page


def metrics_bytes(messages: int) -> int:
    """What the executor's metrics of one batch of `Event` runs come to in the log."""
    for cached in (telemetry.metrics, config):
        cached.cache_clear()
    metrics = telemetry.metrics()
    for number in range(messages):
        metrics.add_metric(telemetry.LATENESS_S, "Seconds", 0.1234567 + number)
    metrics.add_metric(f"{telemetry.RUNS}.dispatched", "Count", messages)
    metrics.add_metric(telemetry.SERVICE_GOOD, "Count", messages)
    metrics.add_metric(telemetry.SERVICE_TOTAL, "Count", messages)
    with redirect_stdout(StringIO()) as printed:
        metrics.flush_metrics()
    for cached in (telemetry.metrics, config):
        cached.cache_clear()
    return len(printed.getvalue()) + EVENT_BYTES


def test_the_page_says_what_the_logs_of_a_million_runs_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGE", "prod")
    page = (ROOT / "docs" / "idle-cost.md").read_text()
    for messages in (10, 1):
        metrics = metrics_bytes(messages) * MILLION / messages
        platform = PLATFORM_BYTES * MILLION / messages
        gb = PRICES["cloudwatch_logs_gb"] / 1e9
        row = f"| {messages} | {metrics * gb:.2f} | {(metrics + platform) * gb:.2f} |"
        assert row in page, row


@pytest.mark.parametrize("least", [5, 20, 100, 1_000])
def test_the_page_says_from_which_load_on_provisioned_billing_pays(least: int) -> None:
    """A run reads its job and writes its record: a unit of each."""
    write_hour, read_hour = PRICES["dynamodb_write_unit_hour"], PRICES["dynamodb_read_unit_hour"]
    # Of the jobs' writes, the runs' reads, and both of the index of failures.
    little = LITTLE * 2 * (write_hour + read_hour)
    month = HOURS * (little + least * (write_hour + read_hour))
    runs = month / (PRICES["dynamodb_write_unit"] + PRICES["dynamodb_read_unit"])
    row = f"| {least:,} | {month:,.2f} | {runs / MILLION:,.0f} | {runs / HOURS / 3600:,.0f} |"
    assert row in (ROOT / "docs" / "idle-cost.md").read_text(), row


def test_the_units_that_do_not_follow_the_load_are_those_of_the_template() -> None:
    assert (ROOT / "deploy" / "scaling.yml").read_text().count(f"MinCapacity: {LITTLE}\n") == 4


def test_the_readme_has_the_bills_dollars() -> None:
    (bill,) = kept(["bill"])
    months = [sum(bill.figures[f"{runs} runs"].values()) for runs in ("1,000", "1,000,000", "100,000,000")]
    lines = (ROOT / "README.md").read_text().splitlines()
    row = next(line for line in lines if "everything counted" in line)
    dollars = [f"{month:,.0f}" for month in months]
    assert [cell.strip() for cell in row.split("|")[2:5]] == dollars
    assert re.findall(r" cost \$(\d+)", "\n".join(lines[:10])) == dollars
