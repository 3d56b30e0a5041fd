"""Printing, and the shapes of what checkpoints and summaries hold."""
