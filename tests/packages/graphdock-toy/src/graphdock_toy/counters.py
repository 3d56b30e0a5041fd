"""A resource kind of the toy's own: a table of named counters that outlives steps."""

from graphdock.contracts import ResourceKind

from graphdock_toy.device import count

__all__ = ["COUNTERS"]


def _create(request):
    count("counters made")
    return {}


def _close(table, request):
    count("counters closed")
    table.clear()


COUNTERS = ResourceKind("toy.Counters", _create, lock="claim", savable=False, close=_close)
