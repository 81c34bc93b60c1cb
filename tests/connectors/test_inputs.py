from __future__ import annotations

import pytest

from connectors.inputs import (
    clean_name,
    clean_token,
    host_of,
    origin_of,
    problem_of_address,
    problem_of_header,
    problem_of_token,
    problem_of_value,
)


def is_public(address):
    return address.is_global


@pytest.mark.parametrize(
    "url",
    [
        "https://mail.example.com/mcp",
        "http://mail.example.com:8080/mcp?team=1",
        "HTTPS://MAIL.EXAMPLE.COM",
        "https://{tenant}.example.com/{region}/mcp",
        "https://8.8.8.8/mcp",
        "https://[2606:4700::1111]/mcp",
    ],
)
def test_an_address_that_can_be_a_servers(url):
    assert problem_of_address(url, is_public) is None


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("", "address"),
        ("mail.example.com", "https://"),
        ("ftp://mail.example.com/", "https://"),
        ("javascript:alert(1)", "https://"),
        ("file:///etc/passwd", "https://"),
        ("https://", "https://"),
        ("https:///mcp", "https://"),
        ("https://mail.example.com:99999/", "https://"),
        ("https://[::1/mcp", "https://"),
        ("{server}/mcp", "https://"),
        ("https://mail.example.com/a b", "spaces"),
        ("https://mail.example.com/\nHost: x", "spaces"),
        ("https://mäil.example.com/", "characters"),
        ("https://user:password@mail.example.com/", "password"),
        ("https://mail.example.com/#here", "#"),
        ("https://mail.example.com/" + "x" * 2100, "longer"),
        ("http://127.0.0.1/", "public"),
        ("http://127.1/", "public"),
        ("http://2130706433/", "public"),
        ("http://0x7f.0.0.1/", "public"),
        ("http://localhost:8000/", "public"),
        ("http://api.localhost/", "public"),
        ("http://169.254.169.254/latest/", "public"),
        ("http://10.0.0.1/", "public"),
        ("http://[::1]/", "public"),
        ("http://[::ffff:10.0.0.1]/", "public"),
        ("http://[fe80::1%25eth0]/", "public"),
    ],
)
def test_an_address_that_cannot_says_why(url, word):
    assert word in problem_of_address(url, is_public)


def test_the_words_about_an_address_repeat_no_password():
    assert "hunter2" not in problem_of_address("https://me:hunter2@example.com/", is_public)


@pytest.mark.parametrize(
    ("name", "value"), [("X-Api-Key", "a b\tc"), ("Authorization", "Basic eDp5"), ("x!#$", "~")]
)
def test_a_header_that_can_be_sent(name, value):
    assert problem_of_header(name, value) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", "x"),
        ("X Key", "x"),
        ("X-Key:", "x"),
        ("Schlüssel", "x"),
        ("Host", "x"),
        ("content-length", "3"),
        ("Mcp-Session-Id", "x"),
        ("X-Key", "a\r\nHost: evil"),
        ("X-Key", "ключ"),
        ("X-Key", "x" * 8001),
    ],
)
def test_a_header_that_cannot_be_sent(name, value):
    assert problem_of_header(name, value)


def test_the_words_about_a_value_repeat_none_of_it():
    assert "planted" not in problem_of_value("planted\nvalue")
    assert "planted" not in problem_of_token("planted value")


@pytest.mark.parametrize(
    ("typed", "token"), [(" abc\n", "abc"), ("Bearer abc", "abc"), ("bearer  abc ", "abc")]
)
def test_a_token_is_taken_as_people_paste_it(typed, token):
    assert clean_token(typed) == token


def test_a_name_is_one_line_and_reorders_nothing():
    assert clean_name(" Mail\n\u202eliaM\u2066 \t x ") == "Mail liaM x"


def test_who_gets_what_is_sent_is_told_by_scheme_host_and_port():
    assert origin_of("https://Mail.example.com/a") == origin_of("https://mail.example.com/b?c")
    assert origin_of("https://mail.example.com/") != origin_of("http://mail.example.com/")
    assert origin_of("https://mail.example.com/") != origin_of("https://mail.example.com:444/")
    assert host_of("https://mail.example.com:444/x") == "mail.example.com:444"
