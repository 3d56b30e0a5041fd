"""Assertions, functions over rows, functions with gradients of their own."""
