"""Operations: requests as data. A blocking client executes them at once, an asynchronous one when awaited."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from dataclasses import dataclass
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload
from urllib.parse import quote

Json = Mapping[str, Any]
P = ParamSpec("P")
T = TypeVar("T")
# In the place of a value that may be null.
UNSET: Any = object()
Page = TypeVar("Page")


def _as_it_is(answer: Any) -> Any:
    return answer


@dataclass(frozen=True)
class Request(Generic[T]):
    """One request; `shape` makes its result of the answer's JSON.

    With an idempotency `key` it takes effect once, however often it is sent. `lines` are NDJSON, in `body`'s place.
    With `only_new` it creates, and replaces nothing. `repeatable`: it may be sent again after a lost answer; by default
    if it depends on neither of `revision` and `only_new`.
    """

    method: str
    path: str
    body: Json | None = None
    revision: int | None = None
    query: Mapping[str, Any] | None = None
    repeatable: bool | None = None
    key: str | None = None
    lines: bytes | None = None
    only_new: bool = False
    shape: Callable[[Any], T] = _as_it_is


@dataclass(frozen=True)
class Wait:
    """A pause of `wait_s` seconds."""

    wait_s: float


# An operation of several requests yields each, is sent its result, and returns its own result.
Steps = Generator[Any, Any, T]
# One that lists results yields them too, as lists: one for each page.
ListSteps = Generator[Request[Any] | list[T], Any, None]


def pages(page_at: Callable[[str | None], Request[Page]], entries: Callable[[Page], list[T]]) -> ListSteps[T]:
    """The `entries` of all pages; `page_at` gives the request for the page at a cursor."""
    cursor: str | None = None
    while True:
        page = yield page_at(cursor)
        yield entries(page)
        if not (cursor := page["next_cursor"]):
            return


def whole_pages(method: str, path: str, query: Json) -> ListSteps[Any]:
    """All pages of a route, each as it is."""
    return pages(
        lambda cursor: Request[Any](method, path, query={**query, "cursor": cursor}), lambda page: [page]
    )


def entries_of(path: str, of: str, query: Json) -> ListSteps[Any]:
    """All entries of the list `of` that the query takes."""

    def page_at(cursor: str | None) -> Request[Any]:
        return Request("GET", path, query={**query, "cursor": cursor})

    return pages(page_at, lambda page: list(page[of]))


def all_of(path: str, body: Json) -> Steps[Any]:
    """Request by request until all are done; the result counts a job or run that several requests met once."""
    ids: dict[str, None] = {}
    refused: list[Any] = []
    cursor = None
    while True:
        part = yield Request("POST", path, {**body, **fields_of(cursor=cursor)})
        ids |= dict.fromkeys(part["ids"])
        refused += part["refused"]
        if not (cursor := part["next_cursor"]):
            done = 0 if part["dry_run"] else len(ids.keys() - {refusal["id"] for refusal in refused})
            return {**part, "matched": len(ids), "done": done, "ids": list(ids), "refused": refused}


def fields_of(**fields: Any) -> dict[str, Any]:
    """The fields that say something: all are None or False by default."""
    return {name: value for name, value in fields.items() if value is not None and value is not False}


def field_of(name: str) -> Callable[[Any], Any]:
    """For answers that have one field: that field."""
    return lambda answer: answer[name]


def path_of(*parts: str) -> str:
    """`/v1/` and the parts, each quoted."""
    return "/".join(["/v1", *(quote(part, safe=":") for part in parts)])


class Blocking(ABC):
    """A client whose operations return results and iterators."""

    @abstractmethod
    def _result_of(self, steps: Steps[T]) -> T: ...

    @abstractmethod
    def _items_of(self, steps: ListSteps[T]) -> Iterator[T]: ...


class Awaiting(ABC):
    """A client whose operations return awaitables and asynchronous iterators."""

    @abstractmethod
    def _result_of(self, steps: Steps[T]) -> Coroutine[Any, Any, T]: ...

    @abstractmethod
    def _items_of(self, steps: ListSteps[T]) -> AsyncIterator[T]: ...


class Operation(Generic[P, T]):
    """A decorator: the method says what to request, and a client that has it executes that.

    The method does not use its `self`. Typed keywords (`**wanted`) need it to be positional: `self, /`.
    """

    def __init__(self, method: Callable[Concatenate[Any, P], Request[T] | Steps[T]]) -> None:
        self.__wrapped__, self.__doc__ = method, method.__doc__  # for `help` and `inspect`

    @overload
    def __get__(self, client: None, owner: object = None) -> Self: ...
    @overload
    def __get__(self, client: Blocking, owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, owner: object = None) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: object = None) -> Any:
        if client is None:
            return self
        return _bound(self.__wrapped__, client, lambda requested: client._result_of(_steps(requested)))

    def request(self, *args: P.args, **kwargs: P.kwargs) -> Request[T]:
        """The request of an operation that has one, for another operation to yield."""
        request = self.__wrapped__(None, *args, **kwargs)
        assert isinstance(request, Request)
        return request


class Listing(Generic[P, T]):
    """The same for a method whose steps yield results one by one."""

    def __init__(self, method: Callable[Concatenate[Any, P], ListSteps[T]]) -> None:
        self.__wrapped__, self.__doc__ = method, method.__doc__  # for `help` and `inspect`

    @overload
    def __get__(self, client: None, owner: object = None) -> Self: ...
    @overload
    def __get__(self, client: Blocking, owner: object = None) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: Awaiting, owner: object = None) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Any, owner: object = None) -> Any:
        return self if client is None else _bound(self.__wrapped__, client, client._items_of)


class AnyCall:
    """Requests that no other operation makes."""

    @Operation
    def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        revision: int | None = None,
        query: Json | None = None,
        *,
        repeatable: bool | None = None,
        key: str | None = None,
        lines: bytes | None = None,
        only_new: bool = False,
    ) -> Request[Any]:
        """The answer's JSON; an answer of NDJSON as it is. Raises Minute8Problem for what is refused, Unreachable.

        With an idempotency `key` it takes effect once, however often it is sent. `lines` are NDJSON, in `body`'s place.
        `only_new` is `If-None-Match: *`.
        """
        return Request(method, path, body, revision, query, repeatable, key, lines, only_new)


def _bound(method: Callable[..., Any], client: object, execute: Callable[[Any], Any]) -> Callable[..., Any]:
    """The method of a client, with the name, documentation and parameters of what was decorated."""

    @functools.wraps(MethodType(method, client))
    def bound(*args: Any, **kwargs: Any) -> Any:
        return execute(method(client, *args, **kwargs))

    return bound


def _steps(requested: Request[T] | Steps[T]) -> Steps[T]:
    result: T = (yield requested) if isinstance(requested, Request) else (yield from requested)
    return result
