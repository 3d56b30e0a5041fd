"""Names of what moves pixels between space, channels and batch."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "batch_to_space": "graphdock_std.array.space:batch_to_space",
    "extract_image_patches": "graphdock_std.array.space:extract_image_patches",
    "image.extract_image_patches": "graphdock_std.array.space:extract_image_patches",
    "image.extract_patches": "graphdock_std.array.space:extract_patches",
    "nn.space_to_batch": "graphdock_std.array.space:space_to_batch",
    "required_space_to_batch_paddings": "graphdock_std.array.space:required_space_to_batch_paddings",
    "space_to_batch": "graphdock_std.array.space:space_to_batch",
}
