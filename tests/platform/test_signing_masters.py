"""The master secrets of pairs: what their parameter holds is read whole, or refused, and never shown."""

from __future__ import annotations

import json

import pytest
from rich.pretty import pretty_repr

from common.platform.signing_masters import Masters


def test_the_parameter_is_read_as_it_was_written() -> None:
    masters = Masters.rotated(Masters.rotated(None))
    assert Masters.parse(masters.to_text()) == masters
    assert (masters.current, sorted(masters.by_version)) == (2, [1, 2])


@pytest.mark.parametrize("master", [bytes(range(32)).hex(), "AAAA", ""])
def test_a_master_of_another_length_is_refused(master: str) -> None:
    with pytest.raises(ValueError, match="master of version 1 has"):
        Masters.parse(json.dumps({"current": 1, "masters": {"1": master}}))


def test_no_way_of_printing_shows_a_secret() -> None:
    masters = Masters.rotated(None)
    secret = repr(masters.by_version[1])
    assert not [text for text in (repr(masters), str(masters), pretty_repr(masters)) if secret in text]
