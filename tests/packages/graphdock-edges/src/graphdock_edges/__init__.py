"""Graphs as lists of lines."""
