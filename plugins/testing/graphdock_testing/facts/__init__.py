"""Facts that ops and packages declare, held against an oracle: variants of samples, algebra, plans, patterns, region compilers.

variants: samples without elements, beyond a kernel's block, of other shapes, with NaN and infinities. fact_case: what an op
declares.
plan_facts: what passes and planning make of it. edge_case: kernels at the ends, which edges draws.
"""
