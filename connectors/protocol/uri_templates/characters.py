"""The characters of a URI, and the percent-encoded ones that an expansion can contain.

Source: RFC 3986, sections 2.1 to 2.3; RFC 6570, section 1.5; RFC 3629, section 4.
"""

from __future__ import annotations

import re
import string
from collections import defaultdict
from typing import Final

UNRESERVED: Final = string.ascii_lowercase + string.digits + string.ascii_uppercase + "-._~"
RESERVED: Final = ":/?#[]@!$&'()*+,;="

SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

# The octets of one character in UTF-8, by range: no overlong form, no surrogate.
UTF8: Final = (
    ((0x00, 0x7F),),
    ((0xC2, 0xDF), (0x80, 0xBF)),
    ((0xE0, 0xE0), (0xA0, 0xBF), (0x80, 0xBF)),
    ((0xE1, 0xEC), (0x80, 0xBF), (0x80, 0xBF)),
    ((0xED, 0xED), (0x80, 0x9F), (0x80, 0xBF)),
    ((0xEE, 0xEF), (0x80, 0xBF), (0x80, 0xBF)),
    ((0xF0, 0xF0), (0x90, 0xBF), (0x80, 0xBF), (0x80, 0xBF)),
    ((0xF1, 0xF3), (0x80, 0xBF), (0x80, 0xBF), (0x80, 0xBF)),
    ((0xF4, 0xF4), (0x80, 0x8F), (0x80, 0xBF), (0x80, 0xBF)),
)


def _octet(low: int, high: int, but: bytes) -> str:
    seconds: dict[str, str] = defaultdict(str)
    for octet in range(low, high + 1):
        if octet not in but:
            digits = f"{octet:02X}"
            seconds[digits[0]] += digits[1]
    return "%(?:" + "|".join(f"{first}[{second}]" for first, second in seconds.items()) + ")"


def _character(but: bytes = b"") -> str:
    return "|".join("".join(_octet(*octet, but) for octet in octets) for octets in UTF8)


# What `{id}` makes of one character outside the unreserved ones: RFC 6570 encodes its UTF-8, and
# RFC 3986 2.1 has producers write upper-case digits, as every expander does. So `%41`, `%2f`, `%FF`
# and `%C3` alone are in no expansion of `{id}`.
ENCODED: Final = _character(but=UNRESERVED.encode())

# What `{+path}` passes through as one character: triplets that were already in the value, in either
# case, be they UTF-8 or not.
PASSED: Final = f"(?i:{_character()})"
