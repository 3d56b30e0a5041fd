"""Commands that write files: what the system refuses is a message and an exit status, as any other error."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["WritingGroup"]


class WritingGroup(click.Group):
    """A group whose commands write files; an OSError of theirs names the file and ends with status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            name = error.filename2 or error.filename
            shown = "" if name is None else f"{str(name)[:200]!r}: "
            raise click.ClickException(f"{shown}{error.strerror or error}") from error
