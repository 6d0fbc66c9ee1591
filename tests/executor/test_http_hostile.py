"""Hostile HTTPS endpoints: answers that drip in, flood, never end or are no HTTP."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.executor.contexts import event
from tests.executor.endpoints import call, endpoints
from tests.executor.servers import NAME, Server

ANSWER_BYTES = 65_536
LOG_TAIL_BYTES = 800

# Of a busy machine. What has no end takes longer.
SOON_S = 30


def drips(first: bytes) -> Any:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(first)
        for _ in range(2_000):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.05)

    return reply


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n",
    ],
)
def test_an_answer_that_drips_in_ends_at_the_time_limit(server: Server, first: bytes) -> None:
    server.reply = drips(first)
    started_at = time.perf_counter()
    outcome = call(server, timeout_s=0.5)
    assert time.perf_counter() - started_at < SOON_S
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, False, "TimedOut")


def test_no_answer_at_all_ends_at_the_time_limit(server: Server) -> None:
    is_over = threading.Event()
    server.reply = lambda handler: is_over.wait(2 * SOON_S) and None
    started_at = time.perf_counter()
    assert call(server, timeout_s=0.3).error_type == "TimedOut"
    assert time.perf_counter() - started_at < SOON_S
    is_over.set()


def test_endless_100_continue_ends_at_the_time_limit(server: Server) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        for _ in range(20_000):
            handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.01)

    server.reply = reply
    assert call(server, timeout_s=0.5).error_type == "TimedOut"


def test_a_huge_answer_is_read_to_a_limit_only(server: Server) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        for _ in range(64):
            handler.wfile.write(b"y" * ANSWER_BYTES)

    server.reply = reply
    outcome = call(server, timeout_s=5)
    assert outcome.ok
    assert len(outcome.log_tail.encode()) == LOG_TAIL_BYTES


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 999999 x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na: " + b"x" * 70_000,
        b"HTTP/1.1 200 OK\r\n\xff\x00: a\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-8\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 30 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 20_000,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ],
)
def test_an_answer_that_is_no_http_may_pass(server: Server, raw: bytes) -> None:
    server.reply = writes(raw)
    outcome = call(server)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, False, "BadAnswer")


def writes(raw: bytes, times: int = 1) -> Any:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        for _ in range(times):
            handler.wfile.write(raw)

    return reply


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: 1000000000\r\n\r\n", b"\r\n", b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n"],
)
def test_of_an_endless_answer_the_beginning_is_read(server: Server, head: bytes) -> None:
    server.reply = writes(b"HTTP/1.1 200 OK\r\n" + head + b"y" * 10_000_000)
    used = time.thread_time()
    assert call(server, timeout_s=20).ok
    assert time.thread_time() - used < 2


def test_a_chunk_of_a_negative_size_is_not_read_without_end(server: Server) -> None:
    server.reply = writes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + b"y" * 50_000_000)
    tracemalloc.start()
    try:
        outcome = call(server, timeout_s=20)
        # The server's own bytes were allocated before.
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert outcome.error_type == "BadAnswer"


@pytest.mark.parametrize(
    "part",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n",
    ],
)
def test_a_flood_of_interim_answers_costs_little_processor_time(server: Server, part: bytes) -> None:
    server.reply = writes(part * 1_000, 10_000)
    used = time.thread_time()
    outcome = call(server, timeout_s=20)
    assert time.thread_time() - used < 2
    assert outcome.error_type == "BadAnswer"


def test_a_body_in_pieces_of_a_byte_costs_little_processor_time(server: Server) -> None:
    server.reply = writes(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\ny\r\n" * 1_000_000
    )
    used = time.thread_time()
    assert call(server, timeout_s=20).ok
    assert time.thread_time() - used < 2


def test_some_interim_answers_are_passed_over(server: Server) -> None:
    server.reply = writes(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20 + b"HTTP/1.1 204 No Content\r\n\r\n")
    assert call(server).ok


def test_a_body_that_says_to_be_compressed_is_never_unpacked(server: Server) -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    server.reply = lambda handler: (200, {"Content-Encoding": "gzip"}, bomb)
    outcome = call(server)
    assert outcome.ok
    assert len(outcome.log_tail.encode()) <= LOG_TAIL_BYTES


def test_an_endpoint_that_does_not_read_the_request_ends_at_the_time_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        url = f"http://{NAME}:{listening.getsockname()[1]}/"
        plain = endpoints(plain_http=True)
        started_at = time.perf_counter()
        outcome = plain.call({"url": url, "method": "POST"}, event(payload="x" * 20_000_000), 0.5)
    assert time.perf_counter() - started_at < SOON_S
    assert outcome.error_type == "TimedOut"
