"""Networks in the style of TensorFlow 1: each is a program, ``python -m examples.alexnet``. docs/examples.md lists them."""
