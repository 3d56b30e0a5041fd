"""Arithmetic that plans are spared: a table of rules, and the pass that reads it."""
