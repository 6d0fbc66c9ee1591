"""The tables: whether they exist, delete expired items, and are protected in production."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from common.platform.findings import RESTORE, Finding, Repair, failed, ok, warning
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.inventory import INDEXES, STAGES_TO_LOSE, TTL_ATTRIBUTE


def table(deployment: Deployment, name: str) -> Iterator[Finding]:
    """Whether a table is active, deletes expired items, and in production can be restored."""
    dynamodb, full_name = deployment.client("dynamodb"), deployment.named(name)
    try:
        description = dynamodb.describe_table(TableName=full_name)["Table"]
    except dynamodb.exceptions.ResourceNotFoundException:
        yield failed(f"there is no table {full_name}", RESTORE)
        return
    if description["TableStatus"] == "UPDATING":
        yield warning("it is being updated", "look again in a minute")
    elif description["TableStatus"] != "ACTIVE":
        yield failed(f"it is {description['TableStatus']}", "look at it in the console")
    indexes = {index["IndexName"]: index for index in description.get("GlobalSecondaryIndexes", [])}
    for index in INDEXES.get(name, ()):
        status = indexes.get(index, {"IndexStatus": "missing"}).get("IndexStatus", "ACTIVE")
        if status != "ACTIVE":
            yield failed(f"its index {index} is {status}", RESTORE)
    yield from _expiring(dynamodb, full_name)
    if deployment.stage in STAGES_TO_LOSE:
        yield ok(f"active, {_billed(description)}, expires what is over")
        return
    yield from _safe(deployment, full_name, bool(description.get("DeletionProtectionEnabled")))
    yield ok(f"active, {_billed(description)}, expires what is over, backed up, cannot be deleted")


def _expiring(dynamodb: Any, full_name: str) -> Iterator[Finding]:
    """Whether what is over is deleted, and nothing else."""
    ttl = dynamodb.describe_time_to_live(TableName=full_name)["TimeToLiveDescription"]
    is_on, attribute = ttl.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"), ttl.get("AttributeName")
    update = f"aws dynamodb update-time-to-live --table-name {full_name} --time-to-live-specification"
    if is_on and attribute != TTL_ATTRIBUTE:
        switch_off = f"{update} Enabled=false,AttributeName={attribute}"
        repair = Repair(switch_off, lambda: _put_ttl(dynamodb, full_name, attribute, False))
        yield failed(
            f"its time to live is on {attribute}: DynamoDB deletes each item whose {attribute} is past and at most five"
            f" years old, and none that has expired",
            f"{switch_off}, at once; up to an hour later {update} Enabled=true,AttributeName={TTL_ATTRIBUTE}; then"
            " docs/restore.md if items are gone",
            repair,
        )
    elif not is_on:
        switch_on = f"{update} Enabled=true,AttributeName={TTL_ATTRIBUTE}"
        yield failed(
            "its time to live is off: what has expired stays for ever",
            switch_on,
            Repair(switch_on, lambda: _put_ttl(dynamodb, full_name, TTL_ATTRIBUTE, True)),
        )


def _put_ttl(dynamodb: Any, full_name: str, attribute: str, is_on: bool) -> None:
    setting = {"Enabled": is_on, "AttributeName": attribute}
    dynamodb.update_time_to_live(TableName=full_name, TimeToLiveSpecification=setting)


def _billed(description: Any) -> str:
    units = description.get("ProvisionedThroughput", {})
    if not (reads := units.get("ReadCapacityUnits")):
        return "on demand"
    return f"{reads} reads and {units['WriteCapacityUnits']} writes a second"


def _safe(deployment: Deployment, full_name: str, protected: bool) -> Iterator[Finding]:
    backups = deployment.client("dynamodb").describe_continuous_backups(TableName=full_name)
    recovery = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
        yield warning(
            "it cannot be brought back to an earlier time: no point-in-time recovery",
            "deploy with pointInTimeRecovery: true",
        )
    if not protected:
        yield warning(
            "it can be deleted by mistake",
            "`make deploy` protects it, or: aws dynamodb update-table --deletion-protection-enabled"
            f" --table-name {full_name}",
        )
