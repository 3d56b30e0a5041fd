"""Scopes on the default graph, as functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from graphdock.device_name import DeviceSpec
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import get_default_graph
from graphdock.graph.operation import Operation

__all__ = ["colocate_with", "container", "control_dependencies", "device", "init_scope", "name_scope"]


def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
) -> AbstractContextManager[str]:
    """Prefix the names of operations made inside; yields the full prefix. ``values`` is accepted for TensorFlow's sake."""
    return get_default_graph().name_scope(name if name is not None else default_name)


def control_dependencies(control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
    """Operations made inside run after ``control_inputs``; None clears all outer ones."""
    return get_default_graph().control_dependencies(control_inputs)


def device(name: str | DeviceSpec | Callable[[Operation], Any] | None) -> AbstractContextManager[None]:
    """Ask for a device: ``"cpu:1"``, ``"/job:worker/task:1"``, a function of the operation, or None to clear."""
    return get_default_graph().device(name)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Operations made inside share a device with ``op``."""
    return get_default_graph().colocate_with(op, ignore_existing)


def container(name: str) -> AbstractContextManager[str]:
    """Variables made inside live in the named container."""
    return get_default_graph().container(name)


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Leave all bodies of conds and loops, and all control dependencies: where variables are made."""
    graph = get_default_graph()
    while isinstance(graph, BodyGraph):
        graph = graph.outer
    with graph.as_default(), graph.control_dependencies(None):
        yield
