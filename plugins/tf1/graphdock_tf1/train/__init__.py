"""Training: optimizers, learning-rate schedules, clipping, moving averages and the global step, under ``tf.train``."""

from __future__ import annotations
