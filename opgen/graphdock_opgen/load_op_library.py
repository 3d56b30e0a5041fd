"""tf.load_op_library: ops from a YAML spec, without a package."""

from __future__ import annotations

import os
from typing import Any

import graphdock
from graphdock.errors import InvalidArgumentError, NotFoundError

__all__ = ["load_op_library"]


def load_op_library(path: str | os.PathLike[str]) -> Any:
    """Declare the ops of a YAML spec in the default graph's host and return a namespace with their wrappers.

    A file that is loaded again, edited, replaces its ops; graphs made before keep theirs. The generator (jinja2, pydantic) is
    imported here and only here. Kernels are registered with ``ops.RegisterKernel``.

    Args:
      path: a ``.yaml`` file.

    Raises:
      NotFoundError: no such file. InvalidArgumentError: it is no such file. OpSpecError: what is wrong in it, with line and
        column.
    """
    text = os.fsdecode(path)
    if text.endswith((".so", ".dll", ".dylib")):
        raise InvalidArgumentError(
            f"{text!r} is a shared library",
            expected="an op spec (.yaml)",
            hint="declare the op in YAML, its kernel separately",
        )
    if not os.path.exists(text):
        raise NotFoundError(f"no op library at {text!r}")
    if not os.path.isfile(text):
        raise InvalidArgumentError(f"{text!r} is not a file", expected="an op spec (.yaml)")
    from graphdock_opgen.memory import load

    graph = graphdock.get_default_graph()
    return load(text, graph.host, graph.plan_all_anew)
