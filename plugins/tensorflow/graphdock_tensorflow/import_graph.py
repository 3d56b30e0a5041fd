"""``graphdock import``: a graph of another form as graphdock's own file, with a table of what was read and what is missing."""

from __future__ import annotations

import os
from typing import Any

import click
from graphdock.contracts import GraphFormat
from graphdock.contracts.command_line.output import count, json_option, print_json, table
from graphdock_storage.checkpoint.files import make_folder, replaced

from graphdock_tensorflow.graphs.files import graph_of

__all__ = ["command"]


@click.command(
    help="Read a graph of TensorFlow: a GraphDef (.pb, .pbtxt), a meta graph (.meta) or the folder of a SavedModel; graphdock's "
    "own JSON; or one of another plugin's format. Print which ops it has, and which of them graphdock lacks; with --to, write "
    "what could be read as graphdock's JSON. Exit status 1: something is missing."
)
@click.argument("path", type=click.Path(exists=True))
@click.option("--to", "target", type=click.Path(dir_okay=False), help="The JSON file to write.")
@click.option("--outputs", default="", help="Comma-separated names of nodes or tensors: read only what they need.")
@click.option("--tags", default="", help="Comma-separated: which graph of a SavedModel that has several.")
@json_option
@click.pass_context
def command(ctx: click.Context, path: str, target: str | None, outputs: str, tags: str, as_json: bool) -> None:
    import graphdock as tf

    graph = tf.Graph()
    form, kind, value = _opened(graph.host, path, [t for t in tags.split(",") if t])
    read = form.read(value, graph.host.ops, outputs=[o for o in outputs.split(",") if o])
    with graph.as_default():
        tf.import_graph_def(read.data, name="")
    report = read.report
    if target is not None:
        _write(target, graph.to_json())
    if as_json:
        print_json(
            {
                "kind": kind,
                "nodes": report.nodes,
                "imported": sum(report.ops.values()),
                "ops": report.ops,
                "missing": [{"op": m.op, "why": m.why or "no such op", "nodes": list(m.nodes)} for m in report.missing],
                "left_out": len(report.left_out),
            }
        )
    else:
        _show(kind, report)
    ctx.exit(0 if report.complete else 1)


def _opened(host: Any, path: str, tags: list[str]) -> tuple[GraphFormat, str, Any]:
    """The format of a file, its kind and what is in it; a file that none knows is taken for a GraphDef's."""
    for form in host.graph_formats.all():
        found = form.open(path, tags)
        if found is not None:
            return form, *found
    form = host.graph_formats.find("GraphDef")
    return form, *graph_of(path, tuple(tags))


def _show(kind: str, report: Any) -> None:
    rows = [(op, number, "") for op, number in report.ops.items()]
    rows += [(m.op, len(m.nodes), f"missing{f': {m.why}' if m.why else ''}, as {m.nodes[0]}") for m in report.missing]
    click.echo(table(("OP", "NODES", "WHAT IS WRONG"), sorted(rows), right=("NODES",)))
    made = sum(report.ops.values())
    text = f"{kind} of {count(report.nodes, 'node')}: {made} imported"
    if not report.complete:
        text += f", {len(report.left_out)} left out, for they are missing here or need what is"
    click.echo(text + ".")


def _write(path: str, text: str) -> None:
    make_folder(os.path.dirname(path))
    with replaced(path) as sink:
        sink.write(text.encode(), 0)
