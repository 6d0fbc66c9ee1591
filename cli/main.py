"""The `minute8` command."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.aws_refusals import aws_refusal
from cli.commands import calendars, deletion, jobs, keys, manual, quotas, runs, tenants
from cli.commands.audit import audit
from cli.commands.failures import failures
from cli.commands.preview import preview
from cli.commands.redrive import redrive
from cli.commands.summaries import summary
from cli.commands.transfer import export_jobs, import_jobs
from cli.commands.webhooks import webhook_secret
from cli.doctor.command import doctor
from cli.exit_codes import CONFLICT, FAILED, INVALID, NOT_ALLOWED, NOT_FOUND, UNREACHABLE
from cli.output import problem_lines
from cli.session import Session
from common.errors import AlreadyExists, Busy, Conflict, InvalidInput, Minute8Error, NotFound
from minute8_client import Minute8Problem, Unreachable

_BY_STATUS = {
    400: INVALID,
    413: INVALID,
    415: INVALID,
    422: INVALID,
    404: NOT_FOUND,
    409: CONFLICT,
    412: CONFLICT,
    401: NOT_ALLOWED,
    403: NOT_ALLOWED,
    429: UNREACHABLE,
    503: UNREACHABLE,
}


class _Guarded(TyperGroup):
    """Turns what was refused into words on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Minute8Problem as problem:
            for line in problem_lines(problem):
                typer.echo(f"minute8: {line}", err=True)
            raise typer.Exit(_BY_STATUS.get(problem.status, FAILED)) from None
        except Unreachable as error:
            typer.echo(f"minute8: {error}", err=True)
            raise typer.Exit(UNREACHABLE) from None
        except Minute8Error as error:
            typer.echo(f"minute8: {error}", err=True)
            codes = {
                InvalidInput: INVALID,
                NotFound: NOT_FOUND,
                AlreadyExists: CONFLICT,
                Conflict: CONFLICT,
                Busy: UNREACHABLE,
            }
            raise typer.Exit(codes.get(type(error), FAILED)) from None
        except Exception as error:
            if (refusal := aws_refusal(error)) is None:
                raise
            typer.echo(f"minute8: {refusal[0]}", err=True)
            raise typer.Exit(refusal[1]) from None


app = typer.Typer(
    cls=_Guarded,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Minute8: a multi-tenant cron for AWS.",
    epilog="Exit codes: 0 done, 1 failed, 2 invalid input, 3 not found, 4 conflict, 5 not allowed, 6 not reachable.",
)
app.add_typer(jobs.app, name="jobs")
app.add_typer(runs.app, name="runs")
app.add_typer(calendars.app, name="calendars")
app.add_typer(tenants.app, name="tenants")
app.add_typer(keys.app, name="keys")
app.add_typer(keys.operator_app, name="operator-keys")
app.add_typer(quotas.app, name="quotas")
tenants.app.command("delete")(deletion.delete)
tenants.app.command("deletion")(deletion.deletion)
jobs.app.command("run")(manual.run_now)
runs.app.command("summary")(summary)
runs.app.command("retry")(manual.retry)
runs.app.command("cancel")(manual.cancel)
app.command()(manual.backfill)
app.command()(doctor)
app.command()(redrive)
app.command()(failures)
app.command()(audit)
app.command("export")(export_jobs)
app.command("import")(import_jobs)
app.command()(preview)
app.command("webhook-secret")(webhook_secret)


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
