"""Arithmetic, reductions and special functions."""
