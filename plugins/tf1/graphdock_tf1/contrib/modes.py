"""Modes that a model is built for: ``tf.contrib.learn.ModeKeys``."""

from __future__ import annotations


class ModeKeys:
    """Names of the modes, as contrib has them; ``tf.estimator.ModeKeys`` calls the last one ``PREDICT``."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"
