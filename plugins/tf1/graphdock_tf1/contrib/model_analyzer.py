"""``slim.model_analyzer``: how large a model is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def analyze_vars(variables: Iterable[Any], print_info: bool = False) -> tuple[int, int]:
    """The number of elements of variables, and of their bytes; a shape that is not known counts as none.

    Args:
      print_info: print a line for each, and both sums.
    """
    elements = size = 0
    lines = ["---------", "Variables: name (type shape) [size]", "---------"]
    for var in variables:
        count = var.shape.num_elements() or 0
        elements += count
        size += count * var.dtype.size
        dims = "unknown" if var.shape.ndims is None else "x".join(map(str, var.shape.as_list()))
        lines.append(
            f"{var.name} ({' '.join(filter(None, (var.dtype.name, dims)))}) [{count}, bytes: {count * var.dtype.size}]"
        )
    if print_info:
        print(*lines, f"Total size of variables: {elements}", f"Total bytes of variables: {size}", sep="\n")
    return elements, size
