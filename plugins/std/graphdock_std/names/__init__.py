"""The names of the standard library that are written by hand, a module per field; those of ops stand in their specs.

The façade reads these tables at run time, opgen reads the modules as data, without importing anything. So each value is a
literal (``docs/reference/op-specs.md``, "Names"). A module is joined by lying in this folder.
"""

from __future__ import annotations

import importlib
import pkgutil

__all__ = ["ENDPOINTS", "FUNCTIONS", "HELPERS", "OPERATORS"]

#: Public functions of tensors, which formulas may call: name below ``tf`` -> ``"module:attribute"``.
FUNCTIONS: dict[str, str] = {}
#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS: dict[str, str] = {}
#: What formulas may call besides, though it is not public.
HELPERS: dict[str, str] = {}
#: Operator methods of a tensor that are more than one op.
OPERATORS: dict[str, str] = {}

for _found in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_found.name}")
    for _name in __all__:
        globals()[_name].update(getattr(_module, _name, {}))
