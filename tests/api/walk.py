"""Every operation of the generated OpenAPI document as a call that succeeds for alice, or for the operator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from common.history.failed_runs import fingerprint
from common.platform.api_keys import OPERATOR, ROLES, Role, hash_of, new_key
from minute8.api.app import ROUTES
from minute8.api.http.openapi import document
from tests.worlds import job

# A body for every shape that a route takes. A new shape needs an example here.
BODIES: dict[str, Any] = {
    "NewJob": job(cron="* * * * *"),
    "BulkJob": ({"job_id": "bulk", **job(cron="* * * * *")},),
    "JobPatch": {"tags": ["patched"]},
    "PreviewRequest": {"schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"}, "count": 3},
    "Pause": {"note": "maintenance"},
    "NewCalendar": {"dates": ["2026-12-24"]},
    "NewSecret": {"value": "a-token-of-another-service"},
    "RunUnrecorded": {"execution_ids": ["alice:lost:20261121T031000Z"], "send": True},
    "NewSubscription": {
        "target": {"kind": "sns", "arn": "arn:aws:sns:us-east-1:123456789012:alerts"},
        "tag": "nightly",
    },
    "RunNow": {"nonce": "walk", "payload": {"customer": 7}},
    "SkipFires": {"note": "maintenance"},
    "WhichDeadLetters": {"all": True},
    "NewBlock": {"pattern": "hooks.example.com", "note": "maintenance"},
    "Release": {"pattern": "hooks.example.com"},
    "PauseJobs": {"name_prefix": "report", "note": "maintenance"},
    "ManyJobs": {"name_prefix": "report"},
    "RunJobs": {"name_prefix": "report", "nonce": "walk"},
    "RetryRuns": {"from_at": "2026-11-21T00:00:00Z", "job_id": "fails"},
    "CancelRuns": {"status": "queued", "note": "maintenance"},
    "NewMute": {"note": "known", "until_at": "2026-11-22T00:00:00Z"},
    "NewBackfill": {"start_at": "2026-11-21T00:00:00Z", "end_at": "2026-11-21T00:02:00Z"},
    "NewTenant": {"tenant_id": "carol", "allowed_targets": ["*"], "quotas": {"jobs": 5}},
    "TenantPatch": {"quotas": {"jobs": 7}},
    "Suspension": {"note": "unpaid"},
    "NewKey": {"role": "admin", "name": "walk"},
    "NewOperatorKey": {"name": "walk"},
}
# Unused keys that the walk can revoke. They are constants, so that the calls are known before there is a world.
SPARE_KEY = new_key()
SPARE_OPERATOR_KEY = new_key()
# What alice has, in the fixture `settled`.
NAMES = {
    "job_id": "report",
    "execution_id": "alice:report:20261121T031300Z",
    "backfill_id": "one",
    "fingerprint": fingerprint("Boom", "it went wrong"),
    "name": "holidays",
    "queue": "executions",
    "tenant_id": "alice",
    "key_id": hash_of(SPARE_KEY)[:16],
}
# What a route cannot do without.
QUERIES = {"/v1/permits": "?key=crm"}
# A tenant that is being deleted.
LEAVING = "leaving"
# Exceptions: a failed run, a waiting run, an operator key, a tenant that is being deleted.
OTHERS = {
    "/v1/failures/groups/{job_id}/{fingerprint}/mute": {"job_id": "fails"},
    "/v1/runs/{execution_id}/retry": {"execution_id": "alice:fails:20261121T031230Z"},
    "/v1/runs/{execution_id}/cancel": {"execution_id": "alice:report:20261121T031900Z"},
    "/v1/operator-keys/{key_id}": {"key_id": hash_of(SPARE_OPERATOR_KEY)[:16]},
    "/v1/tenants/{tenant_id}/deletion": {"tenant_id": LEAVING},
}
# The same names for things that do not exist.
NOTHING = {
    "job_id": "nothing",
    "execution_id": "alice:nothing:20261121T031300Z",
    "backfill_id": "nothing",
    "fingerprint": "0" * 12,
    "name": "nothing",
    "queue": "nothing",
    "tenant_id": "nobody",
    "key_id": "0" * 16,
}
# Invalid or unknown ids: separators of keys and paths, look-alikes, too long ones.
ODD_IDS = [
    "a#b",
    "a/b",
    "a:b",
    "a%b",
    "a b",
    "аlice",
    "report\u200b",
    "ｒeport",
    "..",
    "-x",
    "x" * 129,
    "x" * 5000,
    "🕗",
    "a\\b",
    "JOB#report",
    "OPERATORS#",
    "alice:report",
    "alice#report",
    "TENANT",
]
# A suspended tenant's admin may also manage its keys and read its audit.
WHILE_SUSPENDED = ("GET /v1/keys", "DELETE /v1/keys/{key_id}", "GET /v1/audit")


@dataclass(frozen=True)
class Call:
    """One operation with its parameters. `names` are the path's parameters, which alice has;
    `pages`: it lists pages of JSON."""

    method: str
    path: str
    url: str
    body: Any
    role: Role
    names: dict[str, str]
    pages: bool

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@cache
def the_document() -> dict[str, Any]:
    """The API's own document. It takes some tenths of a second to make, and ten files read it."""
    return document(ROUTES)


def calls_of_document() -> Iterator[Call]:
    for path, operations in the_document()["paths"].items():
        for method, operation in operations.items():
            if "security" not in operation:
                continue
            known = NAMES | OTHERS.get(path, {})
            names = {name: known[name] for name in re.findall(r"{(\w+)}", path)}
            yield Call(
                method=method.upper(),
                path=path,
                url=path.format(**names) + QUERIES.get(path, ""),
                body=_body(operation),
                role=operation["x-minute8-role"],
                names=names,
                pages="application/json" in operation["responses"].get("200", {}).get("content", {})
                and "cursor" in [parameter["name"] for parameter in operation.get("parameters", [])],
            )


def _body(operation: dict[str, Any]) -> Any:
    if "requestBody" not in operation:
        return None
    content, *_ = operation["requestBody"]["content"].values()
    return BODIES[content["schema"]["$ref"].rpartition("/")[2]]


# All callers of an Office with the role of their key or token; invalid credentials have none.
ROLE_OF: dict[str, Role | None] = {
    "alice's read key": "read",
    "alice's write key": "write",
    "alice's admin key": "admin",
    "bob's admin key": "admin",
    "an operator key": "operator",
    "alice's read token": "read",
    "alice's write token": "write",
    "alice's admin token": "admin",
    "bob's admin token": "admin",
    "no key": None,
    "a forged key": None,
    "a key with a wrong checksum": None,
    "a key in words": None,
    "the stored hash": None,
    "an expired key": None,
    "a revoked key": None,
    "an expired operator key": None,
    "a revoked operator key": None,
    "an unsigned token": None,
    "a token signed by somebody else": None,
    "another issuer's token": None,
    "a token for something else": None,
    "an expired token": None,
    "a token of no tenant": None,
    "a token of a tenant that is not there": None,
}


def refusals_of(call: Call) -> Iterator[tuple[str, int, str]]:
    """The callers that are refused, each with the status and the problem's name."""
    for who, role in ROLE_OF.items():
        if role is None:
            yield who, 401, "unauthenticated"
        elif not _may(role, call.role):
            yield who, 403, "forbidden"
        elif who.startswith("bob") and call.names and call.method != "PUT":  # a PUT creates one for bob
            yield who, 404, "not-found"


def _may(role: Role, needed: Role) -> bool:
    """Written here a second time, since it is what the walk tests."""
    if OPERATOR in (role, needed):
        return role == needed
    return ROLES.index(role) >= ROLES.index(needed)


if __name__ == "__main__":  # python -m tests.api.walk: the figures
    walked = list(calls_of_document())
    refused = sum(len(list(refusals_of(call))) for call in walked)
    odd = sum(len(call.names) for call in walked) * len(ODD_IDS)
    lists = [call for call in walked if call.pages]
    print(f"{len(walked)} routes behind a key, {len(ROLE_OF)} callers: {refused} refusals;")
    print(f"{odd} with odd ids; {len(lists)} lists and as many foreign cursors each")
