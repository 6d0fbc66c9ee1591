"""`python -m cli` is `minute8`."""

from cli.main import main

main()
