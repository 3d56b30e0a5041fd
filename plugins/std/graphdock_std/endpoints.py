"""The public names of the standard library: dotted name -> ``"module:attribute"``, strings only.

What is generated comes from ``_gen.endpoints``; what is written by hand says its names in a table ``ENDPOINTS`` of
its own module. Of those modules only that one statement is run: they need the graph layer, which is slow to load, and
while they are being imported they may look up names here. So a table is one expression over constants, at the top
level, that ends with a brace at the margin.
"""

from __future__ import annotations

from typing import Any

__all__ = ["MODULES", "table_of"]

#: Modules with a table of their own. A later one overrides an earlier one, and all override what is generated.
MODULES = tuple(f"graphdock_std.{m}" for m in ("math", "einsum", "array", "nn", "random", "initializers", "train"))


def table_of(source: str, module: str) -> dict[str, str]:
    """The value that ``source`` assigns to ``ENDPOINTS``, found without running anything else of it.

    Raises:
      graphdock.errors.InternalError: there is no such statement, it needs names from elsewhere, or its value is not a
        dict of strings.
    """
    import ast

    from graphdock.errors import InternalError

    lines = source.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith(("ENDPOINTS =", "ENDPOINTS:"))), len(lines))
    end = next((i for i in range(start, len(lines)) if lines[i].endswith("}") and lines[i][0] in "E}"), start)
    cause: Exception | None = None
    try:
        for statement in ast.parse("\n".join(lines[start : end + 1])).body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                table = eval(compile(ast.Expression(statement.value), module, "eval"), {"__builtins__": {}})
                if isinstance(table, dict) and all(isinstance(v, str) for item in table.items() for v in item):
                    return table
    except (SyntaxError, NameError) as error:
        cause = error
    raise InternalError(
        f"{module} has no table of endpoints that stands by itself",
        hint='write ENDPOINTS = {"name": "module:attribute", ...} at its top level, closed by a brace at the margin',
    ) from cause


def _build() -> dict[str, str]:
    import importlib.util

    from graphdock_std._gen.endpoints import ENDPOINTS as generated

    table = dict(generated)
    for module in MODULES:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.loader is None or spec.origin is None:
            raise ModuleNotFoundError(f"no module named {module!r}, which graphdock_std.endpoints lists", name=module)
        # Not get_source(): the loader that pytest puts before an installed plugin's modules has only get_data().
        source: bytes = spec.loader.get_data(spec.origin)  # type: ignore[attr-defined]
        table |= table_of(source.decode(), module)
    return table


def __getattr__(name: str) -> Any:
    """``ENDPOINTS``, built at first use."""
    if name != "ENDPOINTS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    table = globals()["ENDPOINTS"] = _build()
    return table
