"""Kubernetes CronJobs as YAML or as `kubectl get cronjobs -o yaml`: the container becomes the payload of a target."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cli.sources.crontab import kubernetes_cron
from cli.sources.source_job import Defaults, Known, NoEquivalent, SourceJob, left_out, payload_of
from common.jobs.spec import MAX_ATTEMPTS

_OVERLAP = {"Allow": "allow", "Forbid": "skip"}
# Kubernetes' own default: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy
_DEFAULT_BACKOFF_LIMIT = 6
# The fields that are read, and the fields that the server adds.
_SERVERS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
KNOWN: Known = {
    "apiVersion": None,
    "kind": None,
    "status": None,
    "metadata": {"name": None, "namespace": None, **dict.fromkeys(_SERVERS)},
    "spec": {
        "schedule": None,
        "timeZone": None,
        "concurrencyPolicy": None,
        "startingDeadlineSeconds": None,
        "suspend": None,
        "jobTemplate": {
            "metadata": dict.fromkeys(_SERVERS),
            "spec": {
                "backoffLimit": None,
                "template": {"metadata": dict.fromkeys(_SERVERS), "spec": {"containers": None}},
            },
        },
    },
}
_WHY = {
    "spec.successfulJobsHistoryLimit": "runs are kept for the tenant's retention_days",
    "spec.failedJobsHistoryLimit": "runs are kept for the tenant's retention_days",
    "spec.jobTemplate.spec.activeDeadlineSeconds": "timeout_s is how long a call is waited for",
}

# Each value takes a character, unless an alias repeats it. Some lines of aliases of aliases stand for billions.
_MAX_REPEATED: Final = 100_000


def read(text: str, defaults: Defaults) -> Iterator[SourceJob]:
    """Each CronJob of the documents, or why it cannot become a job."""
    # Imported here: nothing else in the command needs it.
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses merge keys (`<<`) that multiply: a few lines of them would fill the memory."""

        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            if len(node.value) > _MAX_REPEATED:
                raise ValueError(f"merge keys make more than {_MAX_REPEATED} fields of one object")

    try:
        documents = list(yaml.load_all(text, Loader))
        nodes = _nodes(documents, {})
        if nodes == math.inf:
            raise ValueError("it nests too deeply: an alias stands for what contains it")
        if nodes > len(text) + _MAX_REPEATED:
            raise ValueError(f"its aliases repeat more than {_MAX_REPEATED} values")
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2026-02-30
        yield SourceJob("file", refusal=f"not YAML: {error}")
        return
    for number, document in enumerate(_items(documents), 1):
        if not isinstance(document, Mapping):
            yield SourceJob(f"document {number}", refusal="not an object")
        elif document.get("kind") == "CronJob":
            yield _job(f"document {number}", document, defaults)


def _nodes(value: Any, known: dict[int, float]) -> float:
    """The number of values. An alias counts as the values that it repeats; a value that contains itself is infinite."""
    if not isinstance(value, Mapping | list):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf  # until it is counted
        inside = value.values() if isinstance(value, Mapping) else value
        known[id(value)] = 1 + sum(_nodes(inner, known) for inner in inside)
    return known[id(value)]


def _items(documents: list[Any]) -> Iterator[Any]:
    for document in documents:
        if isinstance(document, Mapping) and str(document.get("kind", "")).endswith("List"):
            items = document.get("items") or []
            yield from items if isinstance(items, list) else [items]
        elif document is not None:
            yield document


def _job(where: str, document: Mapping[str, Any], defaults: Defaults) -> SourceJob:
    try:
        return _read_job(document, defaults)
    except NoEquivalent as refusal:
        return SourceJob(where, refusal=str(refusal))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        return SourceJob(where, refusal=f"not a whole CronJob: {error!r}")


def _read_job(document: Mapping[str, Any], defaults: Defaults) -> SourceJob:
    metadata, spec = document["metadata"], document["spec"]
    namespace, name = metadata.get("namespace") or "default", metadata["name"]
    where = f"{namespace}/{name}"
    if not defaults.target:
        return SourceJob(where, refusal="a container needs a target that runs it: --target")
    job = spec["jobTemplate"]["spec"]
    containers = job["template"]["spec"]["containers"]
    schedule, notes = _schedule(spec, defaults)
    definition: dict[str, Any] = {
        "name": where,
        "schedule": schedule,
        "target": defaults.target,
        "payload": {"container": payload_of(containers[0], where="containers.0")},
    }
    policy = spec.get("concurrencyPolicy") or "Allow"
    if policy in _OVERLAP:
        definition["overlap"] = _OVERLAP[policy]
    else:
        notes.append(f"concurrencyPolicy {policy} has no equal here; runs may overlap")
    if (deadline := spec.get("startingDeadlineSeconds")) is not None:
        definition["start_deadline_s"] = max(deadline, 1)
        if deadline < 1:
            notes.append(f"startingDeadlineSeconds {deadline} becomes 1, the shortest")
    backoff_limit = job.get("backoffLimit")
    attempts = (_DEFAULT_BACKOFF_LIMIT if backoff_limit is None else backoff_limit) + 1
    definition["retry"] = {"max_attempts": min(attempts, MAX_ATTEMPTS)}
    if attempts > MAX_ATTEMPTS:
        notes.append(
            f"backoffLimit {backoff_limit} becomes {MAX_ATTEMPTS - 1}: {MAX_ATTEMPTS} attempts are the most"
        )
    for number in range(1, len(containers)):
        notes.append(f"containers.{number} is left out: only the first container is taken")
    notes += left_out(document, KNOWN, _WHY)
    job_id = name if namespace == "default" else f"{namespace}.{name}"
    return SourceJob(where, job_id, definition, notes=tuple(notes), suspended=bool(spec.get("suspend")))


def _schedule(spec: Mapping[str, Any], defaults: Defaults) -> tuple[dict[str, str], list[str]]:
    """The schedule, and notes about it."""
    cron, zone, notes = str(spec["schedule"]).strip(), spec.get("timeZone"), list[str]()
    if prefix := re.match(r"(?:CRON_)?TZ=(\S+)\s+", cron):
        if zone:
            notes.append(f"{prefix[0].strip()} in the schedule is left out: timeZone names the zone")
        zone, cron = zone or prefix[1], cron[prefix.end() :]
    zone = zone or defaults.timezone
    if every := re.fullmatch(r"@every\s+(\S+)", cron):
        if zone:
            notes.append(f"the zone {zone} is left out: @every is elapsed time")
        return {"every": every[1]}, [
            *notes,
            "@every counts from the first import on, not from the CronJob's creation",
        ]
    if not zone:
        notes.append(
            "no zone is named, so the times are read as UTC; Kubernetes reads them in its controller's zone"
        )
    return {"cron": kubernetes_cron(cron)} | ({"timezone": zone} if zone else {}), notes
