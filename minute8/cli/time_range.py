"""The times of `--since` and `--until`. Not in `options.py`, because time zones are slow to load."""

from __future__ import annotations

import re
from contextlib import suppress

from common.errors import InvalidInput
from common.timing.durations import instant_hint, parse_duration, parse_instant
from common.timing.instants import DAY_S, rfc3339


def range_of(since: str | None, until: str | None, now: float) -> tuple[str | None, str | None]:
    """The range for the API; None: the API's own default. Raises InvalidInput."""
    return (
        rfc3339(since_at(since, now)) if since else None,
        rfc3339(since_at(until, now, "until")) if until else None,
    )


def since_at(text: str, now: float, option: str = "since") -> int:
    """The time of `--since` or `--until`: a duration before now, or a time. Raises InvalidInput."""
    with suppress(InvalidInput):
        return int(now) - parse_duration(text, option)
    try:
        return parse_instant(text, option)
    except InvalidInput as error:
        raise InvalidInput(
            option, "must be a duration or a time", value=text, accepted=_since_hint(text, now)
        ) from error


def time_ahead(text: str, now: float, option: str, usual_days: int) -> str:
    """A duration from now or a time, as RFC 3339; `usual_days` is for the message. Raises InvalidInput."""
    with suppress(InvalidInput):
        return rfc3339(int(now) + parse_duration(text, option))
    with suppress(InvalidInput):
        return rfc3339(parse_instant(text, option))
    usual = f"such as {usual_days}d or {rfc3339((int(now) // DAY_S + usual_days) * DAY_S)}"
    raise InvalidInput(
        option, "must be a duration or a time", value=text, accepted=instant_hint(text) or usual
    )


def _since_hint(text: str, now: float) -> str:
    from common.hints import duration_hint  # only for a message

    days = {"today": 0, "yesterday": 1}.get(text.lower())
    if days is not None:
        return rfc3339((int(now) // DAY_S - days) * DAY_S)
    hint = duration_hint(re.sub(r"\s*ago$", "", text)) or instant_hint(text)
    return hint or f"such as 2h, 7d or {rfc3339(int(now) // DAY_S * DAY_S)}"
