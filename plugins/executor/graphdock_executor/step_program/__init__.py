"""The step program: what a step does, as typed statements over typed names; text is printed from it once, at the end."""

from __future__ import annotations
