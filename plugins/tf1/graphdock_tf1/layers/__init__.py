"""Layers: what makes variables and the ops on them, under ``tf.layers``."""

from __future__ import annotations
