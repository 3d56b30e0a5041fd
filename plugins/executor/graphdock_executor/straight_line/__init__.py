"""The straight-line executor: all local devices share one generated function, in one order."""
