"""An embedded AWS that is used as an account is: over TLS, under the strict layer, by a user with named policies."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from scripts.embedded.deployment import client
from scripts.embedded.process import Embedded, kill, start

# What no account takes: this machine's layers, and as much at once as this machine does.
PARAMS: Final = {
    "layerPath": "build/layer-local",
    "jwtLayerPath": "build/layer-jwt-local",
    "otlpLayerPath": "build/layer-otlp-local",
    "savedQueries": "off",
    "maximumConcurrency": "10",
    # An update ends what the server is executing. Messages are hidden for a fifth longer than this.
    "executorTimeoutS": "20",
}

# The deployment tool looks each 5 s, for an AWS that is far away and slower.
POLLING: Final = {"SLS_AWS_MONITORING_FREQUENCY": "250"}


@contextmanager
def account(policies: Iterable[Path], user: str = "deployer") -> Iterator[tuple[Embedded, dict[str, str]]]:
    """Start one of its own; yields it, and the environment of a user who may do what these policies say and no more.

    Raises EmbeddedError.
    """
    with tempfile.TemporaryDirectory(prefix="minute8-account-", ignore_cleanup_errors=True) as directory:
        embedded = start(Path(directory), 0, strict=True, tls=True, tied=True)
        try:
            yield embedded, embedded.env() | credentials(embedded, user, policies)
        finally:
            kill(Path(directory))


def credentials(embedded: Embedded, user: str, policies: Iterable[Path]) -> dict[str, str]:
    """Make a user with exactly these policies; returns the environment of the user's tools."""
    iam: Any = client(embedded, "iam")
    iam.create_user(UserName=user)
    for policy in policies:
        arn = iam.create_policy(PolicyName=f"minute8-{policy.stem}", PolicyDocument=policy.read_text())
        iam.attach_user_policy(UserName=user, PolicyArn=arn["Policy"]["Arn"])
    key = iam.create_access_key(UserName=user)["AccessKey"]
    return {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        **POLLING,
    }
