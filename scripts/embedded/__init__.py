"""The embedded AWS: all of Minute8 on one machine, without Docker and without an account.

    embedded = start(state_dir, port)       # or the one that already runs there
    deploy(embedded, stage="local")         # the real serverless.yml
    boto3.client("sqs", ...)                # with embedded.env() in the environment
    stop(state_dir)                         # the state stays; kill() is the power cut

docs/embedded-aws.md says how it differs from AWS.
"""

from scripts.embedded.deployment import deploy, remove
from scripts.embedded.process import (
    DEFAULT_PORT,
    DEFAULT_STATE_DIR,
    Embedded,
    EmbeddedError,
    find,
    kill,
    start,
    stop,
)

__all__ = [
    "DEFAULT_PORT",
    "DEFAULT_STATE_DIR",
    "Embedded",
    "EmbeddedError",
    "deploy",
    "find",
    "kill",
    "remove",
    "start",
    "stop",
]
