"""The data plugin: what feeds programs. Records and Examples, lookup tables, queues, readers and queue runners."""

import os as _os

from graphdock import ops as _ops

# What is made by a function of this package was made at the user's line.
_ops.add_internal_folder(_os.path.dirname(__file__))
