"""Plain data, graphdock's own form of a graph: what every format of graphs is read as, and readable JSON."""
