"""Passes over plans that hold lists of tensors."""
