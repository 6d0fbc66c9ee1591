"""The `minute8` command."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from common.version import VERSION
from minute8.cli.commands.table import Commands
from minute8.cli.rest_of_list import remember_words
from minute8.cli.session import Session


class _Guarded(Commands):
    """Prints refusals on stderr and sets the exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        remember_words(ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:  # what is no refusal is raised again
            from minute8.cli.output import say
            from minute8.cli.refusals import (
                near_job,
                refusal,
                reword,
                unquoted,
            )  # load what `--help` does not need

            reword(error)
            if hint := unquoted(error):
                say(f"minute8: {hint}")
            if (lines_and_code := refusal(error)) is None:
                raise
            lines, code = lines_and_code
            if near := near_job(error, ctx.obj):
                lines = [*lines, near]
            for line in lines:
                say(f"minute8: {line}")
            raise typer.Exit(code) from None


app = typer.Typer(
    cls=_Guarded,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Minute8: a multi-tenant cron for AWS.",
    epilog="Exit codes: 0 done, 1 failed, 2 invalid input, 3 not found, 4 conflict, 5 not allowed, 6 not reachable.",
)


def _print_version(is_set: bool) -> None:
    if is_set:
        typer.echo(f"minute8 {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    url: Annotated[str | None, typer.Option(help="The API's address; else MINUTE8_URL.")] = None,
    key: Annotated[
        str | None, typer.Option(help="The API key; else MINUTE8_KEY, which no process list shows.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="A profile of the settings file; else MINUTE8_PROFILE.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    ctx.obj = ctx.obj or Session(url, key, profile)


def main() -> None:
    """Run the command."""
    try:
        app(prog_name="minute8")
    except BrokenPipeError:  # `minute8 jobs list | head`
        sys.stderr.close()


if __name__ == "__main__":
    main()
