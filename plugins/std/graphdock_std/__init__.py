"""The standard op library: specs, what opgen made of them, and the public functions written by hand on top.

It enters graphdock as anyone's package would, through the hook ``register_ops``. Importing this package loads neither
NumPy nor the graph layer. What is public stands in ``names.py`` and what ops use in their specs, so the modules of
functions, shape functions, gradients and oracles have no ``__all__``.
"""

import os as _os

from graphdock import ops as _ops

# An op made by a function of this package was made at the user's line. Said here, not where the ops are registered:
# `tf.ones` may be the first call of a program, and it needs no registered op.
_ops.add_internal_folder(_os.path.dirname(__file__))
