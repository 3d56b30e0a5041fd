"""Forms of graphs and of checkpoints: JSON behind a word, and nothing at all."""

import json

from graphdock.contracts import CheckpointFormat, GraphFormat, GraphRead, ImportReport


class ToyGraphs(GraphFormat):
    name = "toy graph"
    summary = "graphdock's plain data behind the word toy"

    def accepts(self, value):
        return isinstance(value, str) and value.startswith("toy ")

    def read(self, value, ops, mapped=(), outputs=()):
        data = json.loads(value.removeprefix("toy "))
        return GraphRead(data, ImportReport(len(data["nodes"])))


class ToyCheckpoints(CheckpointFormat):
    name = "toy checkpoint"

    def exists(self, prefix):
        return False

    def open(self, prefix):
        raise NotImplementedError
