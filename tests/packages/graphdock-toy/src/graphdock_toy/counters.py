"""A resource kind of the toy's own: a table of numbered counters that outlives steps."""

from graphdock.contracts import ResourceKind

from graphdock_toy.device import count

__all__ = ["COUNTERS", "Table"]


class Table:
    """Counters by number; those that were never counted hold ``start``. Closed, it can't be used any more."""

    def __init__(self, start):
        self.start = start
        self.values = {}

    def get(self, key):
        return self.values.get(key, self.start)


def _create(request):
    count("counters made")
    return Table(request.attrs["start"])


def _close(table, request):
    count("counters closed")
    table.values = None


COUNTERS = ResourceKind("toy.Counters", _create, lock="step", close=_close)
