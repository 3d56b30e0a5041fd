"""What people use of TensorFlow 1's contrib: layers, slim, framework, losses. Built on public names only."""

from __future__ import annotations
