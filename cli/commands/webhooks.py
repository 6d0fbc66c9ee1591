"""`minute8 webhook-secret`: what signs calls of HTTP targets."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import AsJson
from cli.output import print_json
from cli.session import session


def webhook_secret(
    ctx: typer.Context,
    rotate: Annotated[
        bool, typer.Option(help="Create a new secret; the old one signs for one more day.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the secret that signs calls of HTTP targets (Standard Webhooks); needs an admin key."""
    with session(ctx).client() as client:
        secret = client.rotate_webhook_secret() if rotate else client.webhook_secret()
    print_json({"secret": secret}) if as_json else typer.echo(secret)
