"""Straight-line executor: lowers a placed graph to one generated function, and runs it."""
