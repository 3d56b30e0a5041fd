"""Sequence to sequence: attention, decoders and their loss, under ``tf.contrib.seq2seq``."""

from __future__ import annotations
