"""What URI ownership costs: `python -m benchmarks.uri_templates`.

Each figure is the best of some rounds. The baselines run in the same process: an anchored regular
expression written by hand for one simple template, and one expansion by `uritemplate`.
"""

from __future__ import annotations

import re
import timeit
import tracemalloc
from collections.abc import Callable

import uritemplate

from connectors.protocol.uri_templates import overlap, owns, parse
from connectors.protocol.uri_templates.positions import positions_of

ROUNDS = 5
TEMPLATE, URI = "crm://signals/{id}", "crm://signals/42"

TYPICAL = [
    (TEMPLATE, URI),
    (TEMPLATE, "crm://people/7"),
    ("crm://accounts/{account}/notes/{note}", "crm://accounts/4711/notes/20%25"),
    ("crm://search{?q,limit}", "crm://search?q=caf%C3%A9&limit=10"),
    ("docs://{+path}", "docs://guides/start/install.md"),
    ("docs://tree{/segment*}", "docs://tree/guides/start/install"),
    ("crm://{id}/copies/{id}", "crm://4711/copies/4711"),
]

HOSTILE = [
    ("40 variables side by side", "".join(f"{{v{n}}}" for n in range(40)) + "{+w}!", "a" * 10_000),
    ("60 variables and letters", "".join(f"{{v{n}}}a" for n in range(60)) + "{+w}#", "a" * 16_384),
    ("41 exploded maps", "{?v*}" + "{&v*}a" * 40 + "{+w}!", "?a=a" + "&a=a" * 4_000),
    ("60 prefixes", "a{v:300}" * 60 + "{+w}!", "a" * 16_384),
    ("two prefixes of 9 999", "{v:9999}{w:9999}!", "%C3%A9" * 2_700),
    ("values tried for a name used twice", "{+z}{v}{+y}!{v}?", "a" * 200 + "!b?"),
    ("a name used 40 times", "{v}" * 40, "a" * 10_001),
]


def best_microseconds(call: Callable[[], object], number: int) -> float:
    return min(timeit.repeat(call, number=number, repeat=ROUNDS)) / number * 1e6


def cold(template: str, uri: str) -> bool:
    """The first look at a URI; `owns` remembers what it found out about the last 64."""
    positions_of.cache_clear()
    return owns(parse(template), uri)


def typical() -> None:
    pattern = re.compile(r"crm://signals/(?:[A-Za-z0-9._~,-]|%[0-9A-F]{2})*")
    baselines = {
        "anchored re for one template": best_microseconds(lambda: pattern.fullmatch(URI), 20_000),
        "uritemplate.expand": best_microseconds(
            lambda: uritemplate.expand(TEMPLATE, {"id": "42"}), 2_000
        ),
    }
    print("typical match, µs: first look at the URI, later looks")
    for template, uri in TYPICAL:
        first = best_microseconds(lambda: cold(template, uri), 2_000)  # noqa: B023
        parsed = parse(template)
        later = best_microseconds(lambda: owns(parsed, uri), 5_000)  # noqa: B023
        answer = "owned" if owns(parsed, uri) else "not owned"
        print(f"  {first:7.1f} {later:7.1f}  {template}  {uri}: {answer}")
        if (template, uri) == (TEMPLATE, URI):
            ratios = {name: later / took for name, took in baselines.items()}
    for name, took in baselines.items():
        print(f"  baseline {name}: {took:.2f} µs; a later look is {ratios[name]:.2f} x")


def many_templates() -> None:
    print("5 000 templates x one URI, ms (at most 20)")
    for title, texts in {
        "templates of many servers": [f"crm{n}://{{kind}}/{{id}}" for n in range(5_000)],
        "the same scheme": [f"crm://kind{n}/{{id}}" for n in range(5_000)],
        "the same literals": [f"crm://{{a{n}}}/{{b{n}}}" for n in range(5_000)],
    }.items():
        templates = [parse(text) for text in texts]
        uri = "crm://kind42/4711"

        def every() -> int:
            positions_of.cache_clear()
            return sum(owns(template, uri) for template in templates)  # noqa: B023

        print(f"  {best_microseconds(every, 1) / 1e3:7.1f}  {title}: {every()} own it")


def hostile() -> None:
    print("worst cases, ms")
    for title, template, uri in HOSTILE:
        took = best_microseconds(lambda: cold(template, uri), 3)  # noqa: B023
        print(f"  {took / 1e3:7.2f}  {title}, {len(uri):,} characters")


def overlaps() -> None:
    print("overlap, ms")
    for a, b in [
        (TEMPLATE, "crm://{kind}/{id}"),
        (TEMPLATE, "crm://{kind}/42"),
        (TEMPLATE, "crm://signals/{id}/notes"),
        (TEMPLATE, "docs://{+path}"),
        ("".join(f"{{a{n}*}}" for n in range(60)) + "!", "{+x}" * 60 + "?"),
    ]:
        left, right = parse(a), parse(b)
        took = best_microseconds(lambda: overlap(left, right), 1)  # noqa: B023
        print(f"  {took / 1e3:7.2f}  {a[:40]}  {b[:40]}: {overlap(left, right)}")


def memory() -> None:
    print("memory of a parsed template, KiB")
    for title, texts in {
        "typical": [f"crm-{n}://{{kind}}/{{id}}" for n in range(1_000)],
        "worst of 8 192 kept": [worst_template(n, 8) for n in range(100, 200)],
        "worst of 256 kept": [worst_template(n, 64) for n in range(100, 200)],
    }.items():
        tracemalloc.start()
        kept = [parse(text) for text in texts]
        print(f"  {tracemalloc.get_traced_memory()[0] / len(kept) / 1024:7.1f}  {title}")
        tracemalloc.stop()


def worst_template(number: int, variables: int) -> str:
    names = ",".join(f"{number}{variable:02}*" for variable in range(variables))
    return f"{{;{names}}}".ljust(1_024, "a")


if __name__ == "__main__":
    for part in (typical, many_templates, hostile, overlaps, memory):
        part()
