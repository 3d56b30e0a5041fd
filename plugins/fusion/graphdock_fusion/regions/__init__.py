"""Regions: what the nodes of a plan compute, in the one language that region compilers print.

:mod:`forms` reads what an op says of itself, :mod:`typed` makes terms of its formulas, :mod:`placing` finds the axes of each
value, and :mod:`lowering` makes a :class:`graphdock.contracts.region_program.RegionProgram` of a region's graph.
"""
