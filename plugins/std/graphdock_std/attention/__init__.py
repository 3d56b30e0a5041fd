"""Attention in other ops, and the embedding of positions by rotation."""
