"""Normalisation: statistics of tensors, of batches, layers and rows."""
