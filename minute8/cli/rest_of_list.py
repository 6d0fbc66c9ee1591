"""What a list leaves out: said on stderr, with the command that lists more."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import typer

T = TypeVar("T")

# Where the root context keeps the words of the command line.
WORDS: Final = "minute8.words"
_TIMES_MORE: Final = 10
# They stand before the command, and hold what no screen should show.
_SECRET: Final = "--key"


def listed(ctx: typer.Context, items: Iterable[T], limit: int, name: str) -> list[T]:
    """The first `limit` of the items. If there are more, says so and how to list them."""
    first = list(islice(items, limit + 1))
    if len(first) > limit:
        say_more(ctx, f"there are more {name}", "--limit", limit, short="-n")
    return first[:limit]


def say_more(ctx: typer.Context, text: str, option: str, value: int, *, short: str = "") -> None:
    """Say what is left out, and the same command with ten times the value of an option."""
    from minute8.cli.output import say  # `--help` needs no rich

    command = with_option(ctx.meta.get(WORDS, ()), option, str(value * _TIMES_MORE), short)
    say(f"minute8: {text}: {command}")


def with_option(words: Sequence[str], option: str, value: str, short: str = "") -> str:
    """The command line with this value of an option, and without an API key."""
    kept: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word in (option, short, _SECRET) and word:
            next(remaining, None)
        elif not word.startswith((f"{option}=", f"{_SECRET}=")) and not _is_joined(word, short):
            kept.append(word)
    return shlex.join(["minute8", *kept, option, value])


def _is_joined(word: str, short: str) -> bool:
    """Whether it is a short option with its value, such as -n20."""
    return bool(short) and word.startswith(short) and word[len(short) :].isdecimal()


def remember_words(ctx: Any, words: Sequence[str]) -> None:
    """Keep the words of the command line in the root's context."""
    ctx.meta[WORDS] = tuple(words)
