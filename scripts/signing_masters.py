"""The master secrets of key pairs: python -m scripts.signing_masters make --stage prod

make    makes the first one, if there is none. Deploying does so, too.
rotate  makes a new one for pairs to come. Existing pairs keep working.
retire  removes an old one: no pair of its version can sign any more.
show    prints which versions there are.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import Conflict
from common.platform.signing_masters import Masters, parameter_name
from scripts.session import session_of


def main(arguments: list[str] | None = None) -> int:
    """Run the verb; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.signing_masters", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("verb", choices=["make", "rotate", "retire", "show"])
    parser.add_argument("--stage", required=True)
    parser.add_argument("--version", type=int, default=0, help="of `retire`: which one")
    parser.add_argument("--region", "-r")
    parser.add_argument("--aws-profile")
    options = parser.parse_args(arguments)
    session = session_of(options.aws_profile)
    try:
        ssm = session.create_client("ssm", region_name=options.region)
        masters = change(ssm, options.stage, options.verb, options.version)
    except (BotoCoreError, ClientError, Conflict) as error:
        print(f"signing_masters: {error}", file=sys.stderr)
        return 1
    versions = ", ".join(map(str, sorted(masters.by_version))) if masters else ""
    print(f"versions {versions}; new pairs use {masters.current}" if masters else "there is no master")
    return 0


def change(ssm: Any, stage: str, verb: str, version: int = 0) -> Masters | None:
    """Do what the verb says to the stage's masters, and return them. Raises Conflict, ClientError."""
    name = parameter_name(stage)
    before = stored(ssm, name)
    if verb == "show" or (verb == "make" and before):
        return before
    if verb == "retire":
        if before is None:
            raise Conflict("there is no master")
        after = before.retired(version)
    else:
        after = Masters.rotated(before)
    ssm.put_parameter(
        Name=name,
        Value=after.to_text(),
        Type="SecureString",
        Overwrite=before is not None,  # two first deployments at once make one
        **({} if before else {"Description": "Minute8: the secrets of key pairs are derived from these"}),
    )
    return after


def remove(ssm: Any, stage: str) -> None:
    """Remove all masters of a stage: none of its pairs works any more."""
    with suppress(ssm.exceptions.ParameterNotFound):
        ssm.delete_parameter(Name=parameter_name(stage))


def stored(ssm: Any, name: str) -> Masters | None:
    """The stored masters, if there are any. Raises ClientError."""
    try:
        return Masters.parse(ssm.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        return None


if __name__ == "__main__":
    sys.exit(main())
