"""Names of the segment reductions written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "sparse_segment_mean": "graphdock_std.math.segment:sparse_segment_mean",
    "sparse_segment_sqrt_n": "graphdock_std.math.segment:sparse_segment_sqrt_n",
    "sparse_segment_sum": "graphdock_std.math.segment:sparse_segment_sum",
    "unsorted_segment_mean": "graphdock_std.math.segment:unsorted_segment_mean",
    "unsorted_segment_sqrt_n": "graphdock_std.math.segment:unsorted_segment_sqrt_n",
    "math.unsorted_segment_mean": "graphdock_std.math.segment:unsorted_segment_mean",
    "math.unsorted_segment_sqrt_n": "graphdock_std.math.segment:unsorted_segment_sqrt_n",
    "sparse.segment_mean": "graphdock_std.math.segment:sparse_segment_mean",
    "sparse.segment_sqrt_n": "graphdock_std.math.segment:sparse_segment_sqrt_n",
    "sparse.segment_sum": "graphdock_std.math.segment:sparse_segment_sum",
}
