"""Sparse tensors: places, values and a shape. ``tf.sparse`` and the older names beside it."""
