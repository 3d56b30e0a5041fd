"""Commands of plugins: ``[command]`` of a manifest names a module, whose ``command`` is a Click command.

It is called as ``graphdock NAME``, NAME being the plugin's, with a :class:`CommandTools` as the object of its context. A plugin of
several commands has a table ``[[command]]`` for each, with a ``name`` where that is not the plugin's::

    @click.command()
    @click.argument("target")
    @click.pass_obj
    def command(tools, target): ...

GraphdockErrors that it raises become one message and an exit status, as for graphdock's own commands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["CommandTools"]


class CommandTools(ABC):
    """Services of graphdock for commands of plugins. Called from the command's own thread."""

    @abstractmethod
    def explain(self, target: str, **config: Any) -> list[Any]:
        """Plan a program's step, and the initial values of its variables where it has any; nothing runs.

        Args:
          target: ``module:name`` or ``path/to/file.py:name``, as for ``graphdock explain``. config: fields of a SessionConfig.

        Returns:
          An Explanation per plan, the step's first. Raises what loading the program and planning raise.
        """

    @abstractmethod
    def table(self, head: Sequence[str], rows: Iterable[Sequence[Any]], right: Iterable[str] = ()) -> str:
        """Aligned text, as graphdock's own commands print it; columns named in ``right`` are aligned right."""
