"""Oracles: what conformance holds every kernel against, computed by other means than NumPy's vectorised functions."""
