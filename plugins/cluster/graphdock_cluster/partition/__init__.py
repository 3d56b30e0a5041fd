"""Partition: a step's operations cut into parts, one per task."""
