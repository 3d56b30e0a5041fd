"""Patterns of several ops that one op of std computes: norms, attention, cells, angles, products and convolutions with what
follows them, losses with the layer before them.

Each spelling is a pattern of its own, and each rank.
"""

from __future__ import annotations

from graphdock_std.patterns.attention import attentions
from graphdock_std.patterns.convolutions import convolutions
from graphdock_std.patterns.linear_cross_entropy import linear_cross_entropies
from graphdock_std.patterns.losses import losses
from graphdock_std.patterns.norms import layer_norms, rms_norms
from graphdock_std.patterns.products import products, products_of_gradients
from graphdock_std.patterns.recurrent import lstms
from graphdock_std.patterns.rotary import rotaries

__all__ = ["NORMS", "OTHERS", "PATTERNS"]

NORMS = (*layer_norms(), *rms_norms())
#: What the cpu computes as fast in several ops.
OTHERS = (
    *attentions(),
    *linear_cross_entropies(),  # before products, which are parts of them
    *products(),
    *convolutions(),
    *lstms(),
    *rotaries(),
    *products_of_gradients(),
    *losses(),
)
PATTERNS = (*NORMS, *OTHERS)
