"""Kubernetes CronJobs as YAML or as `kubectl get cronjobs -o yaml`: the container becomes the payload of a target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from common.limits import MAX_ATTEMPTS
from common.timing.instants import DAY_S
from minute8.cli.sources.crontab import FOR_NEVER, kubernetes_cron, never_comes, steps_note
from minute8.cli.sources.source_job import Defaults, Known, NoEquivalent, SourceJob, left_out, payload_of
from minute8.cli.sources.yaml_text import load_documents

_OVERLAP = {"Allow": "allow", "Forbid": "skip"}
# Kubernetes' own default: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy
_DEFAULT_BACKOFF_LIMIT = 6
# The longest `start_deadline_s` of a job (docs/job.md).
_MAX_START_DEADLINE_S: Final = 14 * DAY_S
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


def read(text: str, defaults: Defaults) -> Iterator[SourceJob]:
    """Each CronJob of the documents, or why it cannot become a job."""
    try:
        documents = load_documents(text)
    except ValueError as error:
        yield SourceJob("file", refusal=f"not YAML: {error}")
        return
    for number, document in enumerate(_items(documents), 1):
        if not isinstance(document, Mapping):
            yield SourceJob(f"document {number}", refusal="not an object")
        elif document.get("kind") == "CronJob":
            yield _job(f"document {number}", document, defaults)


def _items(documents: list[Any]) -> Iterator[Any]:
    for document in documents:
        if isinstance(document, Mapping) and re.search(r"(?:List|Template)$", str(document.get("kind", ""))):
            items = document.get("items") or document.get("objects") or []  # OpenShift's Template has objects
            yield from items if isinstance(items, list) else [items]
        elif document is not None:
            yield document


def _job(where: str, document: Mapping[str, Any], defaults: Defaults) -> SourceJob:
    try:
        return _read_job(document, defaults)
    except NoEquivalent as refusal:
        return SourceJob(where, refusal=str(refusal))
    except KeyError as missing:
        way = "of a patch or an overlay, import what `kubectl kustomize` or `kubectl get cronjobs -o yaml` prints"
        return SourceJob(where, refusal=f"not a whole CronJob, it has no {missing.args[0]}: {way}")
    except (TypeError, AttributeError, IndexError, ValueError) as error:
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
    if never := never_comes(str(schedule.get("cron", ""))):
        schedule["cron"] = FOR_NEVER
        notes.append(never)
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
    if (deadline := _whole_number(spec, "startingDeadlineSeconds")) is not None:
        definition["start_deadline_s"] = kept = min(max(deadline, 1), _MAX_START_DEADLINE_S)
        if kept != deadline:
            bound = "shortest" if deadline < 1 else "longest"
            notes.append(f"startingDeadlineSeconds {deadline} becomes {kept}, the {bound}")
    backoff_limit = _whole_number(job, "backoffLimit")
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
    return SourceJob(
        where, job_id, definition, notes=tuple(notes), suspended=bool(spec.get("suspend") or never)
    )


def _whole_number(spec: Mapping[str, Any], name: str) -> int | None:
    """Raises NoEquivalent if it is there and no whole number."""
    value = spec.get(name)
    if value is None or type(value) is int:
        return value
    raise NoEquivalent(f"{name} is {value!r}; accepted: a whole number, as Kubernetes takes it")


def _whole_seconds(duration: str) -> str | int:
    """Go's duration, such as 1.5h or 1h30m, in whole seconds; as it stands where it is none. Kubernetes rounds down."""
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?[hms])+", duration):
        return duration
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms])", duration)
    return int(sum(float(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in parts))


def _schedule(spec: Mapping[str, Any], defaults: Defaults) -> tuple[dict[str, str | int], list[str]]:
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
        return {"every": _whole_seconds(every[1])}, [
            *notes,
            "@every counts from the first import on, not from the CronJob's creation",
        ]
    if not zone:
        notes.append(
            "no zone is named, so the times are read as UTC; Kubernetes reads them in its controller's zone"
        )
    notes += steps_note(cron, converted := kubernetes_cron(cron))
    return {"cron": converted, **({"timezone": zone} if zone else {})}, notes
