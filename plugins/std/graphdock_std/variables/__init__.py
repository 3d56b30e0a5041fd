"""Initial values of variables, counters, and which have no value yet."""
