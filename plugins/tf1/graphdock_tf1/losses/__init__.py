"""Losses: how far predictions are from labels, weighted and collected, under ``tf.losses``."""

from __future__ import annotations
