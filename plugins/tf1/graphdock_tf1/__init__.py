"""TensorFlow 1's Python library over the standard op library."""

import os as _os

from graphdock import ops as _ops

# What is made by a function of this package was made at the user's line.
_ops.add_internal_folder(_os.path.dirname(__file__))
