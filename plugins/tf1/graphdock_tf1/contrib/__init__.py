"""Parts of TensorFlow 1's contrib that people use: layers, slim, framework, losses. Built on public names only."""

from __future__ import annotations
