"""A sample target: an example of a tenant's own Lambda function. The demo deploys it.

Its event is {"payload": …, "minute8": {tenant, job_id, execution_id, fire_at, due_at, attempt,
schedule_revision, trigger}}. The payload may contain

    duration_s            how long it works, in seconds (default 0.05)
    fail_first_attempts   how many attempts fail before one succeeds
    fail_rate             this share of executions fails (0 to 1), all attempts of one execution alike
"""

import hashlib
import time
from typing import Any

MAX_DURATION_S = 60.0


class TargetFailed(Exception):
    """The failure that the payload asked for."""


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Work for a while, then succeed or fail as the payload says. The result ends up in the run."""
    payload: dict[str, Any] = event.get("payload") or {}
    run: dict[str, Any] = event.get("minute8") or {}
    execution_id, attempt = str(run.get("execution_id", "")), int(run.get("attempt", 1))
    duration_s = min(float(payload.get("duration_s", 0.05)), MAX_DURATION_S)

    print(f"start job={run.get('job_id')} execution={execution_id} attempt={attempt}")
    time.sleep(duration_s)
    if attempt <= int(payload.get("fail_first_attempts", 0)):
        raise TargetFailed(f"attempt {attempt} fails, as the payload asked: fail_first_attempts")
    if chance(execution_id) < float(payload.get("fail_rate", 0)):
        raise TargetFailed(f"execution {execution_id} fails, as the payload asked: fail_rate")
    items = 1 + int(chance(execution_id + "items") * 500)
    print(f"done items={items} duration_s={duration_s}")
    return {"items": items, "attempt": attempt}


def chance(text: str) -> float:
    """Return a number in [0, 1) that depends only on `text`, so that all attempts get the same number."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
