"""A cache with a lifetime."""

from __future__ import annotations

from common.cache import Cache, Kept


def test_a_value_is_good_for_its_lifetime() -> None:
    cache: Cache[str, int | None] = Cache(30, 10)
    assert cache.get("a", 100) is None
    cache.put("a", 1, 100)
    assert cache.get("a", 129.9) == Kept(100, 1)
    assert cache.get("a", 130) is None
    assert cache.whatever_age("a") == Kept(100, 1)


def test_none_is_a_value_too() -> None:
    cache: Cache[str, None] = Cache(30, 10)
    cache.put("a", None, 100)
    assert cache.get("a", 101) == Kept(100, None)


def test_a_value_of_the_future_is_not_trusted() -> None:
    cache: Cache[str, int] = Cache(30, 10)
    cache.put("a", 1, 100)
    assert cache.get("a", 99) is None


def test_the_one_used_longest_ago_goes_first() -> None:
    cache: Cache[str, int] = Cache(30, 2)
    cache.put("a", 1, 100)
    cache.put("b", 2, 100)
    cache.get("a", 101)
    cache.put("c", 3, 102)
    assert [cache.get(key, 102) for key in "abc"] == [Kept(100, 1), None, Kept(102, 3)]


def test_a_forgotten_entry_is_gone() -> None:
    cache: Cache[str, int] = Cache(30, 2)
    cache.put("a", 1, 100)
    cache.forget("a")
    cache.forget("never there")
    assert cache.get("a", 100) is None
