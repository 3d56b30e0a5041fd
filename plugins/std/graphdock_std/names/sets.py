"""Names of ``tf.sets``."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "sets.difference": "graphdock_std.sparse.sets:set_difference",
    "sets.intersection": "graphdock_std.sparse.sets:set_intersection",
    "sets.set_difference": "graphdock_std.sparse.sets:set_difference",
    "sets.set_intersection": "graphdock_std.sparse.sets:set_intersection",
    "sets.set_size": "graphdock_std.sparse.sets:set_size",
    "sets.set_union": "graphdock_std.sparse.sets:set_union",
    "sets.size": "graphdock_std.sparse.sets:set_size",
    "sets.union": "graphdock_std.sparse.sets:set_union",
}
