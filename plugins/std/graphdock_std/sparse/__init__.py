"""Sparse tensors: places, values and a shape; and sets. ``tf.sparse`` and the older names beside it."""
