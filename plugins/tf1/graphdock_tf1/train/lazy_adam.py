"""Adam that leaves alone what a sparse gradient does not name."""

from __future__ import annotations

from typing import Any

from graphdock_std._gen import optimizers_ops

from graphdock_tf1.train.adam import AdamOptimizer


class LazyAdamOptimizer(AdamOptimizer):
    """AdamOptimizer, but IndexedSlices change only the rows that they name, and only those rows' moments.

    Adam moves every row at every step, because moments that decay still point somewhere. Where a few rows of a large embedding
    are gathered per step this is far quicker, and not the same: a row's moments wait for its next gradient. Dense gradients are
    applied as by AdamOptimizer, whose arguments and slots it has.
    """

    def _updates(self) -> tuple[Any, Any]:
        return super()._updates()[0], optimizers_ops.resource_sparse_apply_adam
