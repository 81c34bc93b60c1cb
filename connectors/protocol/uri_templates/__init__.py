"""Which URIs a resource template owns. Pure.

A template owns a URI if some assignment of its variables (undefined, strings, lists and maps, empty
ones included) expands to exactly that URI under RFC 6570, at every level; only the scheme is
compared without regard to case. Nothing looser: no reordered query, no unencoded character.
Source: Resource Arguments, "How the host finds the serving server"; D-R9, D-R10.
"""

from .overlap import overlap
from .ownership import owns
from .template import BadTemplate, Template, parse

__all__ = ["BadTemplate", "Template", "overlap", "owns", "parse"]
