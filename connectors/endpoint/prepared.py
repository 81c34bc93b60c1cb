"""Queries that are written once: the ORM needs far longer to write one than a database to run it.

For what every request of an outside client asks. The conditions stay where they are, in querysets.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet, Subquery, TextField
from django.db.models.sql.compiler import SQLCompiler


class Prepared:
    """A `values_list` query with named parameters.

    samples: a value for each parameter that nothing else in the query equals.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Any]], **samples: Any) -> None:
        self._build, self._samples = build, samples
        self._written: tuple[str, list[tuple[str | None, Any]]] | None = None

    def rows(self, **values: Any) -> tuple[tuple[Any, ...], ...]:
        """Give the rows as the database driver gives them: to be compared, not to be read."""
        sql, places = self._written or self._write()
        params = [_adapted(values[name]) if name else constant for name, constant in places]
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            return tuple(cursor.fetchall())

    def _write(self) -> tuple[str, list[tuple[str | None, Any]]]:
        sql, params = self._build(**self._samples).query.sql_with_params()
        names = {_adapted(sample): name for name, sample in self._samples.items()}
        places = [(names.get(param), param) for param in params]
        assert {name for name, _ in places if name} == set(self._samples)
        self._written = sql, places
        return self._written


class Folded(Subquery):
    """The rows of a query as one text, to be compared, not to be read.

    SQLite's driver lets go of the interpreter for each row, and while another thread is busy it
    gets it back milliseconds later.
    """

    output_field = TextField()
    template = "(SELECT json_agg(folded)::text FROM (%(subquery)s) folded)"

    def as_sqlite(self, compiler: SQLCompiler, connection: Any) -> tuple[str, Any]:
        names = ", ".join(f"c{number}" for number in range(len(self.query.select)))
        rows = f"WITH folded({names}) AS (%(subquery)s)"
        template = f"({rows} SELECT json_group_array(json_array({names})) FROM folded)"
        return self.as_sql(compiler, connection, template=template)


def _adapted(value: Any) -> Any:
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value
