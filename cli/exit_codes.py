"""The exit codes, as docs/cli.md tells them. 2 is also what typer and click use for a wrong command line."""

FAILED, INVALID, NOT_FOUND, CONFLICT, NOT_ALLOWED, UNREACHABLE = 1, 2, 3, 4, 5, 6
