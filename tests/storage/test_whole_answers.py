"""An answer that came in one piece is read without the parser: it says the same, or leaves the answer to it."""

from __future__ import annotations

import pytest

from common.storage.connections import Answer, NotHttp, whole_answer

_OK = b"HTTP/1.1 202 Accepted\r\n"
_PLAIN = (
    _OK + b"Content-Length: 0\r\nx-amzn-RequestId: 5f\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type:application/json \r\ncontent-length: 2\r\n\r\n{}",
    b"HTTP/1.1 200\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\n{}",
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
)


@pytest.mark.parametrize("received", _PLAIN)
def test_it_says_what_the_parser_says(received: bytes) -> None:
    parsed = Answer()
    parsed.feed(received)
    assert parsed.is_complete
    assert whole_answer(received) == (parsed.response(), parsed.keeps_alive())


@pytest.mark.parametrize(
    "received",
    [
        b"",
        _PLAIN[0][:-1],  # it is cut off
        _PLAIN[1][:-1],
        _PLAIN[0] + _PLAIN[0],  # more follows
        _PLAIN[0] + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + _PLAIN[0],
        _OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        _OK + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        _OK + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
        _OK + b"Content-Length: +0\r\n\r\n",
        _OK + b"Content-Length: 0\r\n folded\r\n\r\n",
        _OK + b"Content-Length : 0\r\n\r\n",
        _OK + b"Content-Length: 0\r\nName: \xff\r\n\r\n",
        _OK + b"Date: now\r\n\r\n",  # its body ends with the connection
        b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 600 What\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_all_else_is_left_to_the_parser(received: bytes) -> None:
    assert whole_answer(received) is None


def test_a_part_of_any_answer_is_left_to_the_parser() -> None:
    for received in _PLAIN:
        for end in range(len(received)):
            assert whole_answer(received[:end]) is None


def test_the_parser_refuses_what_is_no_http() -> None:
    received = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nbroken\r\n\r\n"
    assert whole_answer(received) is None
    with pytest.raises(NotHttp):
        Answer().feed(received)


def test_a_body_is_cut_to_what_was_asked_for() -> None:
    answer = whole_answer(_PLAIN[1])
    assert answer is not None
    assert (answer[0].up_to(1).body, answer[0].up_to(2).body) == (b"{", b"{}")
