"""Kubernetes CronJobs as YAML or as `kubectl get cronjobs -o yaml`: the container becomes the payload of a target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cli.sources.found import Defaults, Found

_OVERLAP = {"Allow": "allow", "Forbid": "skip"}


def read(text: str, defaults: Defaults) -> Iterator[Found]:
    # Here, for nothing else of the command needs it.
    import yaml

    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        yield Found("file", refusal=f"not YAML: {error}")
        return
    for number, document in enumerate(_items(documents), 1):
        if not isinstance(document, Mapping):
            yield Found(f"document {number}", refusal="not an object")
        elif document.get("kind") == "CronJob":
            yield _job(f"document {number}", document, defaults)


def _items(documents: list[Any]) -> Iterator[Any]:
    for document in documents:
        if isinstance(document, Mapping) and str(document.get("kind", "")).endswith("List"):
            yield from document.get("items") or []
        elif document is not None:
            yield document


def _job(where: str, document: Mapping[str, Any], defaults: Defaults) -> Found:
    try:
        return _read_job(where, document, defaults)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        return Found(where, refusal=f"not a whole CronJob: {error!r}")


def _read_job(where: str, document: Mapping[str, Any], defaults: Defaults) -> Found:
    metadata, spec = document["metadata"], document["spec"]
    namespace, name = metadata.get("namespace", "default"), metadata["name"]
    where = f"{namespace}/{name}"
    if not defaults.target:
        return Found(where, refusal="a container needs a target that runs it: --target")
    job = spec["jobTemplate"]["spec"]
    definition: dict[str, Any] = {
        "name": where,
        "schedule": _schedule(spec, defaults),
        "target": defaults.target,
        "payload": {"container": job["template"]["spec"]["containers"][0]},
    }
    notes = []
    policy = spec.get("concurrencyPolicy", "Allow")
    if policy in _OVERLAP:
        definition["overlap"] = _OVERLAP[policy]
    else:
        notes.append(f"concurrencyPolicy {policy} has no equal here; runs may overlap")
    if "startingDeadlineSeconds" in spec:
        definition["start_deadline_s"] = spec["startingDeadlineSeconds"]
    if "backoffLimit" in job:
        definition["retry"] = {"max_attempts": job["backoffLimit"] + 1}
    if len(job["template"]["spec"]["containers"]) > 1:
        notes.append("only the first container is taken")
    job_id = name if namespace == "default" else f"{namespace}.{name}"
    return Found(where, job_id, definition, notes=tuple(notes), suspended=bool(spec.get("suspend")))


def _schedule(spec: Mapping[str, Any], defaults: Defaults) -> dict[str, str]:
    cron, zone = str(spec["schedule"]).strip(), spec.get("timeZone")
    if prefix := re.match(r"(?:CRON_)?TZ=(\S+)\s+", cron):
        zone, cron = zone or prefix[1], cron[prefix.end() :]
    zone = zone or defaults.timezone
    if every := re.fullmatch(r"@every\s+(\S+)", cron):
        return {"every": every[1]}
    return {"cron": cron} | ({"timezone": zone} if zone else {})
