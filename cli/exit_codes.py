"""The exit codes, as in docs/cli.md. typer and click also use 2 for a wrong command line."""

FAILED, INVALID, NOT_FOUND, CONFLICT, NOT_ALLOWED, UNREACHABLE = 1, 2, 3, 4, 5, 6
