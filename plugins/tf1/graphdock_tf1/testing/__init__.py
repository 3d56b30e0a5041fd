"""``tf.test``: a TestCase with sessions and comparisons of arrays, gradients by differences, and what tests ask of the machine."""
