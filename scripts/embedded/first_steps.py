"""What a newcomer needs after a deployment: a tenant with a key, shell settings, and a function to call."""

import contextlib
import shlex
from pathlib import Path

from common.clock import SystemClock
from common.errors import AlreadyExists, Unauthenticated
from common.platform.tenants import Tenants
from common.storage.table import Table
from scripts.demo.stage import Stage
from scripts.embedded.deployment import client
from scripts.embedded.process import ROOT, Embedded

TENANT = "sample"
# An HTTP server on this machine that the tenant may call from the beginning.
LOCAL_SERVER = "localhost:8000"
_NAME = "env"


def write_environment(embedded: Embedded, stage: str) -> Path:
    """Write <state_dir>/env, which a shell reads with `.`: PATH, the API's address, a key of the tenant `sample`.

    The tenant is created if it does not exist, and the key if the one in the file no longer works.
    """
    path, tenants = Path(embedded.state_dir) / _NAME, _tenants(embedded, stage)
    variables = {
        "MINUTE8_URL": embedded.api_url,
        "MINUTE8_KEY": _working_key(path, tenants) or _new_key(tenants),
        "MINUTE8_STAGE": stage,
        **embedded.env(),
    }
    lines = [
        "# Written by `make up`. MINUTE8_KEY is the tenant `sample`'s; the rest is for commands of the platform.",
        f'export PATH={shlex.quote(str(ROOT / ".venv" / "bin"))}:"$PATH"',
        *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
    ]
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n")
    return path


def allow_sample_target(embedded: Embedded, stage: str) -> str:
    """Deploy examples/target, allow the tenant `sample` to call it, and return its ARN."""
    arn, tenants = Stage(embedded.env(), stage).deploy_target(), _tenants(embedded, stage)
    allowed = tenants.get(TENANT).allowed_targets
    if arn not in allowed:
        tenants.edit(TENANT, {"allowed_targets": [*allowed, arn]}, SystemClock().now())
    return arn


def _tenants(embedded: Embedded, stage: str) -> Tenants:
    return Tenants(Table(client(embedded, "dynamodb"), f"minute8-{stage}-tenants"))


def _working_key(path: Path, tenants: Tenants) -> str | None:
    written = path.read_text().splitlines() if path.exists() else []
    for key in (line.removeprefix("export MINUTE8_KEY=") for line in written if "MINUTE8_KEY=" in line):
        try:
            if tenants.api_keys.authenticate(key, SystemClock().now()).tenant == TENANT:
                return key
        except Unauthenticated:
            return None  # the key belongs to a state that was wiped
    return None


def _new_key(tenants: Tenants) -> str:
    now = SystemClock().now()
    with contextlib.suppress(AlreadyExists):
        tenants.create(TENANT, "The tenant that `make up` creates", now, {"allowed_targets": [LOCAL_SERVER]})
    return tenants.api_keys.create_key(TENANT, "admin", now, name="make up")[0]
