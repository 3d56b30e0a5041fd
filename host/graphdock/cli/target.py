"""Targets: what a command is asked to look at, ``package.module:name`` or ``path/to/file.py:name``.

The name is that of a function, which builds a graph and returns what would be fetched, or of what would be fetched, built while the
program was loaded.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from graphdock.contracts.command import ProgramStep
from graphdock.errors import GraphdockError, InvalidArgumentError, NotFoundError, did_you_mean
from graphdock.graph.graph import Graph


def build(target: str) -> ProgramStep:
    """Load a program, and call the function if the target is one.

    The program runs as if it were imported, so that what stands below ``if __name__ == "__main__"`` does not. What it prints
    goes to standard error.

    What is named may be a pair of the fetches and a ``feed_dict``.

    Raises:
      InvalidArgumentError: the target is of another form, the function needs arguments, or the program failed.
      NotFoundError: no such file, module or name.
    """
    place, colon, name = target.rpartition(":")
    parts = [Path(place).stem] if place.endswith(".py") else place.split(".")
    if not colon or not name.isidentifier() or not (place.endswith(".py") or all(p.isidentifier() for p in parts)):
        raise InvalidArgumentError(
            f"{target!r} is not a target",
            expected="module:name or path/to/file.py:name, the name being that of a function that returns the fetches, "
            "or of what would be fetched",
        )
    with Graph().as_default() as graph, contextlib.redirect_stdout(sys.stderr):
        module = _from_file(Path(place)) if place.endswith(".py") else _import(place)
        if name not in vars(module):
            made = [n for n, v in vars(module).items() if not (n.startswith("_") or isinstance(v, ModuleType))]
            raise NotFoundError(f"{place} has no {name!r}", hint=did_you_mean(name, made))
        found = vars(module)[name]
        if callable(found) and _graph_of(found) is None:
            _takes_nothing(target, found)
            with _running(target):
                found = found()
    feeds = None
    if isinstance(found, tuple) and len(found) == 2 and _is_feed(found[1]):
        found, feeds = found
    return ProgramStep(_graph_of(found) or graph, found, feeds)


def check_fed(target: str, program: ProgramStep) -> None:
    """Refuse a program whose step needs a placeholder that it does not feed; on the command line nothing else can.

    Raises:
      InvalidArgumentError: it says how a program gives its feeds.
    """
    from graphdock.planning.translate import needed_operations
    from graphdock.session.fetches import Feed, FetchPlan

    fetch = FetchPlan(program.graph, program.fetches)
    fed = {Feed(program.graph, key).tensor: None for key in program.feeds or ()}
    roots = [t.op for t in fetch.tensors if t not in fed] + fetch.operations
    for op in needed_operations(roots, fed):
        if op.verb == "feed" and op.outputs[0] not in fed:
            raise InvalidArgumentError(
                f"placeholder {op.name!r} is needed, and {target} does not feed it",
                op=op.name,
                site=op.site,
                hint="let the name be that of a pair, (fetches, feed_dict), or of a function that returns one",
            )


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NotFoundError(f"no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _running(str(path), str(path.parent.resolve())):
        spec.loader.exec_module(module)
    return module


def _import(name: str) -> ModuleType:
    with _running(name, ""):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            raise NotFoundError(f"no module {name!r}") from error


@contextlib.contextmanager
def _running(program: str, *folders: str) -> Iterator[None]:
    """Whatever the program raises becomes one message with the last line of it; what is graphdock's own goes through.

    ``folders`` are first on ``sys.path`` meanwhile.
    """
    sys.path[:0] = folders
    try:
        yield
    except GraphdockError:
        raise
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = f"{last[0].filename}:{last[0].lineno}" if last else None
        raise InvalidArgumentError(f"{program} failed: {type(error).__name__}: {error}", site=where) from error
    finally:
        del sys.path[: len(folders)]


def _takes_nothing(target: str, function: Any) -> None:
    required = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if required:
        raise InvalidArgumentError(
            f"{target} is called without arguments, but it needs {', '.join(required)}",
            expected="a function that builds a graph and returns what would be fetched",
        )


def _graph_of(fetches: Any) -> Graph | None:
    """The graph of the first thing in a structure that has one."""
    waiting = [fetches]
    while waiting:
        item = waiting.pop()
        graph = getattr(item, "graph", None)
        if isinstance(graph, Graph):
            return graph
        if isinstance(item, Mapping):
            waiting += reversed(list(item.values()))
        elif isinstance(item, (list, tuple)):
            waiting += reversed(item)
    return None


def _is_feed(item: Any) -> bool:
    """Return whether it maps tensors to values; a dict of fetches has them the other way round."""
    return isinstance(item, Mapping) and all(_graph_of(value) is None for value in item.values())
