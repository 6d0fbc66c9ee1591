"""Addresses that no job may reach, in any notation; and the connection goes to the address that was checked."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.config import Config
from common.tenants.web_address import BadUrl, is_public, is_public_or_loopback, read_url
from executor.network_guard import ForbiddenAddress, NetworkGuard, Resolver, Unreachable

PRIVATE = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254"),
    *("169.254.169.254", "169.254.170.2", "169.254.100.1", "172.16.0.1", "172.31.255.255", "192.0.0.1"),
    *("192.0.0.170", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255"),
    *("198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8", "::127.0.0.1"),
    *("::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1"),
    *("2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::", "3fff::1"),
    *("5f00::1", "fc00::1", "fd00:ec2::254", "fd00:ec2::23", "fe80::1", "fec0::1", "ff02::1", "ff0e::1"),
    *("fe80::1%eth0", "2606:4700::1111%eth0"),
]
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "52.94.236.248",
    "172.15.0.1",
    "172.32.0.1",
    "2606:4700:4700::1111",
    "2a05:d018::1",
]


@pytest.mark.parametrize("text", PRIVATE)
def test_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_public(text: str) -> None:
    assert is_public(ip_address(text))


@given(st.ip_addresses())
def test_nothing_is_public_that_python_calls_private(ip: object) -> None:
    parsed = ip_address(str(ip))
    if (
        parsed.is_private
        or parsed.is_loopback
        or parsed.is_link_local
        or parsed.is_multicast
        or parsed.is_reserved
    ):
        assert not is_public(parsed)


@pytest.mark.parametrize(
    "host",
    [
        *("2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "0"),
        *("127.0.0.01", "1.2.3.4.5", "256.1.1.1", "1.2.3.0x4", "0x", "a.0x7f", "example.1"),
        *("localhost.", "example.com.", ".example.com", "example..com", "-a.com", "a-.com", "a_b.com"),
        *("[::1", "::1", "[::1]]", "[fe80::1%25eth0]", "[fe80::1%eth0]", "[127.0.0.1]", "[v1.x]", "[]"),
        *(
            "",
            "EXAMPLE.com",
            "exämple.com",
            "ⓔxample.com",
            "127。0。0。1",
            "①②⑦.0.0.1",
            "a b.com",
            "a\tb.com",
        ),
        *(
            "user@a.com",
            "a.com@b.com",
            "a.com\\@b.com",
            "a.com\r\nx",
            "a.com\x00",
            "%31%32%37.0.0.1",
            "a" * 64 + ".com",
        ),
        *("a.com:", "a.com:x", "a.com:-1", "a.com:22", "a.com:25", "a.com:80", "a.com:65536", "a.com:99999"),
    ],
)
def test_no_host_that_could_be_read_in_two_ways(host: str) -> None:
    with pytest.raises(BadUrl):
        read_url(f"https://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.com", "//example.com/", "https:example.com", "https:/example.com", "https:///x", "HTTPS://a.com"),
        *("file:///etc/passwd", "gopher://a.com/", "ftp://a.com", "javascript:alert(1)", "https+x://a.com"),
        *("https://a.com/#x", "https://a.com/a b", "https://a.com/\\x", "https://a.com/\n", "https://a.com/\r\nHost:"),
        *("https://a.com?x\n", "https://a.com\n", " https://a.com", "https://a.com/ü", "https://a.com/" + "a" * 2048),
    ],
)  # fmt: skip
def test_no_url_that_could_smuggle(url: str) -> None:
    with pytest.raises(BadUrl):
        read_url(url)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://a.com", ("a.com", 443, "/", "a.com")),
        ("https://a.com?b=c", ("a.com", 443, "/?b=c", "a.com")),
        ("https://a-1.co/x/%2e%2e;a=b?c=/d?e", ("a-1.co", 443, "/x/%2e%2e;a=b?c=/d?e", "a-1.co")),
        ("https://a.com:8443/", ("a.com", 8443, "/", "a.com:8443")),
        ("http://a.com/", ("a.com", 80, "/", "a.com")),
        ("https://8.8.8.8:443/", ("8.8.8.8", 443, "/", "8.8.8.8")),
        ("https://[2606:4700:0::1]:8443", ("2606:4700::1", 8443, "/", "[2606:4700::1]:8443")),
        ("https://xn--exmple-cua.com/", ("xn--exmple-cua.com", 443, "/", "xn--exmple-cua.com")),
    ],
)
def test_a_url_in_its_parts(url: str, parts: tuple[str, int, str, str]) -> None:
    address = read_url(url)
    assert (address.host, address.port, address.target, address.host_header) == parts


@pytest.mark.parametrize("ip", PRIVATE)
def test_a_name_that_resolves_to_what_is_not_public_is_refused(ip: str) -> None:
    guard = NetworkGuard(Resolver(lambda host, port: [ip]))
    with pytest.raises(ForbiddenAddress, match="not a public address"):
        guard.connect(read_url("https://127.0.0.1.nip.io/"), 1)


@pytest.mark.parametrize("ip", PRIVATE)
def test_a_literal_address_is_refused_without_asking_anybody(ip: str) -> None:
    if "%" in ip:
        return  # test_no_host_that_could_be_read_in_two_ways

    def never(host: str, port: int) -> list[str]:
        raise AssertionError(host)

    host = f"[{ip}]" if ":" in ip else ip
    with pytest.raises(ForbiddenAddress):
        NetworkGuard(Resolver(never)).connect(read_url(f"https://{host}/"), 1)


@pytest.mark.parametrize(
    "ips", [["8.8.8.8", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["::1", "8.8.8.8"], ["fe80::1%eth0"]]
)
def test_one_private_address_among_others_refuses_the_name(ips: list[str]) -> None:
    with pytest.raises(ForbiddenAddress):
        NetworkGuard(Resolver(lambda host, port: ips)).checked(read_url("https://a.com/"), 1)


def test_addresses_of_the_systems_resolver_are_checked_too() -> None:
    with pytest.raises(ForbiddenAddress):
        NetworkGuard().connect(read_url("https://localhost/"), 5)


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_connection_goes_to_the_checked_address(listening: int) -> None:
    resolved_hosts = []

    def rebinding(host: str, port: int) -> list[str]:
        resolved_hosts.append(host)
        return ["127.0.0.1"] if len(resolved_hosts) == 1 else ["169.254.169.254"]

    guard = NetworkGuard(Resolver(rebinding), allows=lambda ip: str(ip) == "127.0.0.1")
    with guard.connect(read_url(f"https://rebind.example:{listening}/"), 5) as connection:
        assert connection.getpeername() == ("127.0.0.1", listening)
    assert resolved_hosts == ["rebind.example"], "resolved once and never again"


def test_the_next_address_is_tried_where_one_does_not_answer(listening: int) -> None:
    guard = NetworkGuard(Resolver(lambda host, port: ["127.0.0.2", "127.0.0.1"]), allows=lambda ip: True)
    with guard.connect(read_url(f"https://a.com:{listening}/"), 5) as connection:
        assert connection.getpeername()[0] == "127.0.0.1"


@pytest.mark.parametrize(("silent", "answers"), [(3, True), (4, False)])
def test_four_addresses_of_a_host_are_tried(listening: int, silent: int, answers: bool) -> None:
    ips = [f"127.0.0.{2 + n}" for n in range(silent)] + ["127.0.0.1"]
    guard = NetworkGuard(Resolver(lambda host, port: ips), allows=lambda ip: True)
    if answers:
        guard.connect(read_url(f"https://a.com:{listening}/"), 5).close()
        return
    with pytest.raises(Unreachable, match=r"\(127\.0\.0\.2, 127\.0\.0\.3, 127\.0\.0\.4, 127\.0\.0\.5\)"):
        guard.connect(read_url(f"https://a.com:{listening}/"), 5)


def test_nobody_listening_may_pass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Unreachable, match="refused"):
        NetworkGuard(Resolver(lambda host, port: ["127.0.0.1"]), lambda ip: True).connect(
            read_url(f"https://a.com:{port}/"), 5
        )


@pytest.mark.parametrize(
    "error", [socket.gaierror(-2, "unknown"), UnicodeError("label too long"), OSError("x")]
)
def test_a_name_that_does_not_resolve_may_pass(error: Exception) -> None:
    def failing(host: str, port: int) -> list[str]:
        raise error

    with pytest.raises(Unreachable, match="does not resolve"):
        NetworkGuard(Resolver(failing)).connect(read_url("https://a.com/"), 5)
    with pytest.raises(Unreachable, match="has no address"):
        NetworkGuard(Resolver(lambda host, port: [])).connect(read_url("https://a.com/"), 5)


def test_a_name_server_that_never_answers_holds_nobody_up() -> None:
    answered = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        answered.wait(60)
        return []

    started_at = time.perf_counter()
    with pytest.raises(Unreachable, match="not resolved within"):
        NetworkGuard(Resolver(slow)).connect(read_url("https://a.com/"), 0.1)
    assert time.perf_counter() - started_at < 30
    answered.set()


@pytest.mark.parametrize(
    ("value", "stage", "plain", "loopback"),
    [
        ("", "local", False, False),
        ("true", "local", True, False),
        ("loopback", "local", True, True),
        ("loopback", "test", True, True),
        ("loopback", "prod", True, False),
    ],
)
def test_loopback_is_open_on_the_embedded_aws_alone(
    value: str, stage: str, plain: bool, loopback: bool
) -> None:
    config = Config.from_env({"PLAIN_HTTP_TARGETS": value, "STAGE": stage})
    assert (config.plain_http_targets, config.loopback_targets) == (plain, loopback)


def test_the_guard_of_the_embedded_aws_opens_loopback_and_nothing_else() -> None:
    allowed = {"127.0.0.1", "::1", "127.8.8.8", "8.8.8.8"}
    refused = {"10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "fd00:ec2::254", "0.0.0.0", "::"}
    assert {text for text in allowed | refused if is_public_or_loopback(ip_address(text))} == allowed
