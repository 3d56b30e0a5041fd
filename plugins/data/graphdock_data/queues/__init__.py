"""Queues, and what is like them: staging areas, accumulators. Names, arguments and defaults are TensorFlow 1's."""
