"""Jinja2 templates of graphdock opgen and of the scaffolds, as package data."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DIRECTORY"]

#: Where the templates lie: ``library`` (generated modules), ``stubs`` (files a person fills), ``scaffold`` (packages).
DIRECTORY = Path(__file__).parent
