"""`minute8 secrets`: values that jobs name as `secret://name`. Stdin has a value, or it is asked for."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from common.timing.instants import relative
from minute8.cli.options import AsJson
from minute8.cli.output import console, print_json, show_list
from minute8.cli.session import session

app = typer.Typer(
    no_args_is_help=True, help="Values that jobs name as secret://name, and that nothing shows."
)

_Name = Annotated[str, typer.Argument(help="The secret's name.")]


@app.command("put")
def put(ctx: typer.Context, name: _Name, as_json: AsJson = False) -> None:
    """Store a secret, or replace its value, which stdin has: a line break at its end is left out."""
    value = typer.prompt("value", hide_input=True, err=True) if sys.stdin.isatty() else _from_stdin()
    with session(ctx).client() as client:
        secret = client.put_secret(name, value)
    print_json(secret) if as_json else console().print(f"{name} is stored, as revision {secret['revision']}")


@app.command("list")
def list_secrets(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the names of the secrets, and when each was last put."""
    with session(ctx).client() as client:
        secrets = client.list_secrets()
    now = session(ctx).clock.now()
    show_list(
        secrets,
        as_json,
        ("SECRET", "REVISION", "CREATED", "CHANGED"),
        lambda secret: (
            secret["name"],
            secret["revision"],
            relative(secret["created_at"], now),
            relative(secret["updated_at"], now),
        ),
        "no secrets",
    )


@app.command("delete")
def delete(ctx: typer.Context, name: _Name) -> None:
    """Delete a secret that no job names."""
    with session(ctx).client() as client:
        client.delete_secret(name)
    console().print(f"{name} is deleted; within a minute calls do not find it")


def _from_stdin() -> str:
    # At most what the API takes, and a little more, so that it can refuse it.
    return sys.stdin.read(20_000).removesuffix("\n").removesuffix("\r")
