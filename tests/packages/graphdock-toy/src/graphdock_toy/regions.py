"""A region compiler: scales that follow one another become one multiplication."""

import numpy as np
from graphdock.contracts import Bound, Claim, Refusal, RegionCompiler

from graphdock_toy.device import count

__all__ = ["Scales"]


class Scales(RegionCompiler):
    """Takes ``toy.Scale`` nodes, each read by the next alone."""

    name = "scales"
    device_type = "toy"

    def claim(self, candidate):
        run = []
        for node in candidate.graph.nodes:
            if node.op != "toy.Scale" or None in (node.outputs[0].shape or (None,)):
                continue
            if run and node.inputs[0] is not run[-1].outputs[0]:
                break
            run.append(node)
        if len(run) < 2:
            return Refusal("no two scales follow one another")
        return Claim(tuple(run), cost_us=0.1)

    def build(self, region, ctx):
        factors, factor = {}, 1.0
        for node in region.graph.nodes:
            factor *= node.attrs["factor"]
            factors[node.outputs[0]] = factor
        wanted = [factors[v] for v in region.graph.outputs]

        def compute(x, *outs):
            count("scales")
            for out, times in zip(outs, wanted, strict=True):
                np.multiply(x.array, times, out=out.array, casting="unsafe")

        return Bound(compute)

    def inplace(self, region):
        return {"out0": ("in0",)} if len(region.graph.outputs) == 1 else {}
