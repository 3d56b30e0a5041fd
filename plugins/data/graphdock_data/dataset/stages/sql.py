"""Sql: the rows that a query of a database gives."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from graphdock.contracts import errors

from graphdock_data.dataset.stages.sources import component
from graphdock_data.dataset.stages.stage import Element, Run, Stage, Value

__all__ = ["Sql"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Sql(Stage):
    """The rows of a query of an SQLite database, scalars each.

    Attributes:
      driver: ``sqlite``. source: the database's file. query: in SQL.
    """

    title = "SqlDataset"
    driver: Value
    source: Value
    query: Value

    def check(self, run: Run) -> None:
        driver = run.array(self.driver).item().decode()
        if driver != "sqlite":
            raise self.refusal("the database can't be read", expected="the driver 'sqlite'", got=repr(driver))

    def iterate(self, run: Run) -> Iterator[Element]:
        path = os.fsdecode(run.array(self.source).item())
        make = [component(kind) for kind in self.types]
        with self.blame():
            if not os.path.exists(path):
                raise errors.NotFoundError(f"there is no database {path!r}")
            try:
                database = sqlite3.connect(path, check_same_thread=False)
                rows = database.execute(run.array(self.query).item().decode())
                for row in rows:
                    if len(row) != len(make):
                        raise errors.InvalidArgumentError(
                            "The number of columns in query does not match the number of components",
                            expected=str(len(make)),
                            got=str(len(row)),
                        )
                    yield tuple([convert(value) for convert, value in zip(make, row, strict=True)])
                database.close()
            except sqlite3.Error as error:
                raise errors.InvalidArgumentError(f"the query of {path!r} failed: {error}") from error
            except (TypeError, ValueError, OverflowError) as error:
                raise errors.InvalidArgumentError(f"a row of {path!r} has another dtype: {error}") from error
