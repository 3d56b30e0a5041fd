"""``tf.data``: datasets, which are trees of immutable stages, and iterators over them."""
