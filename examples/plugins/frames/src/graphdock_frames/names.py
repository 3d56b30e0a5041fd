"""Public names that are written by hand, each with its "module:attribute". Those of ops stand in their specs.

opgen reads this file without running it, so every value is written out.
"""

#: Functions of tensors, which the formulas of this package's specs may call.
FUNCTIONS: dict[str, str] = {}

#: Whatever else is public.
ENDPOINTS: dict[str, str] = {}
