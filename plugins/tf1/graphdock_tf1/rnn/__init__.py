"""Recurrent cells and networks, under ``tf.nn.rnn_cell``, ``tf.nn`` and ``tf.contrib.rnn``."""

from __future__ import annotations
