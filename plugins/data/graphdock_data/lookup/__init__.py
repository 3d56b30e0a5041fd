"""Lookup tables. Names, arguments and defaults are TensorFlow 1's."""
