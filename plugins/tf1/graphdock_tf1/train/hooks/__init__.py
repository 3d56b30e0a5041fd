"""Hooks of a monitored session: what is done before and after each of its steps."""
