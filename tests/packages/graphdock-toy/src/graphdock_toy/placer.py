"""A placer that leaves everything where the host's rules put it."""

from graphdock.contracts import Placer

__all__ = ["ToyPlacer"]


class ToyPlacer(Placer):
    name = "toy"

    def place(self, problem):
        return dict(enumerate(problem.rules))
