"""The options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import completion

JobId = Annotated[str, typer.Argument(help="The job's id.", autocompletion=completion.job_ids)]
Since = Annotated[str | None, typer.Option(help="Only from the last 2h, 7d…, or since a time.")]
Until = Annotated[str | None, typer.Option(help="Only before this time.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="List at most this many.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
