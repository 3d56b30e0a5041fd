"""Metrics over many steps: local variables, operations that update them, and the value so far, under ``tf.metrics``."""

from __future__ import annotations
