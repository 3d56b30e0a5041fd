"""Distributions: densities, statistics and samples of batches of random variables, under ``tf.distributions``."""

from __future__ import annotations
