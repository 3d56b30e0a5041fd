"""Names of what moves pixels between space, channels and batch."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "batch_to_space": "graphdock_std.array.space:batch_to_space",
    "batch_to_space_nd": "graphdock_std.array.space:batch_to_space_nd",
    "depth_to_space": "graphdock_std.array.space:depth_to_space",
    "extract_image_patches": "graphdock_std.array.space:extract_image_patches",
    "image.extract_image_patches": "graphdock_std.array.space:extract_image_patches",
    "image.extract_patches": "graphdock_std.array.space:extract_patches",
    "manip.batch_to_space_nd": "graphdock_std.array.space:batch_to_space_nd",
    "manip.space_to_batch_nd": "graphdock_std.array.space:space_to_batch_nd",
    "nn.depth_to_space": "graphdock_std.array.space:depth_to_space",
    "nn.space_to_batch": "graphdock_std.array.space:space_to_batch",
    "nn.space_to_depth": "graphdock_std.array.space:space_to_depth",
    "required_space_to_batch_paddings": "graphdock_std.array.space:required_space_to_batch_paddings",
    "space_to_batch": "graphdock_std.array.space:space_to_batch",
    "space_to_batch_nd": "graphdock_std.array.space:space_to_batch_nd",
    "space_to_depth": "graphdock_std.array.space:space_to_depth",
}
