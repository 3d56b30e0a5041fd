"""Fusion: patterns, regions, joined products and sums, unrolled loops."""
