"""The cluster plugin: sessions whose steps run on several tasks, servers, and what tasks hand one another."""

import os as _os

from graphdock import ops as _ops

# What is made by a function of this package was made at the user's line.
_ops.add_internal_folder(_os.path.dirname(__file__))
