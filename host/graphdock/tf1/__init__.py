"""What TensorFlow 1 has, and what of it is here: the public names of its core API as data, and scripts held against them."""
