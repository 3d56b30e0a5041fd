"""Reading event files, and what a summary op says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from graphdock import messages
from graphdock.errors import InvalidArgumentError
from graphdock_storage.records import read_records


def summary_iterator(path: str) -> Iterator[Any]:
    """The events of an event file, one after another; the file may still grow.

    Raises:
      DataLossError: at the first record that is damaged, or cut off. NotFoundError: there is no file.
    """
    for data in read_records(path):
        yield messages.from_bytes("Event", data, f"a record of {str(path)!r}")


def get_summary_description(node_def: Any) -> Any:
    """The SummaryDescription that a node of the op TensorSummary has as JSON in its attribute ``description``.

    Raises:
      InvalidArgumentError: the node is of another op, or its description is none.
    """
    if node_def.op != "TensorSummary":
        raise InvalidArgumentError(
            f"Can't get_summary_description on {node_def.op}", expected="a node of the op TensorSummary"
        )
    attr = node_def.attr["description"]
    text = getattr(attr, "s", attr)
    try:
        fields = json.loads(text) if text else {}
        return messages.SummaryDescription(type_hint=fields.get("typeHint", fields.get("type_hint")))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgumentError(
            f"the description of {node_def.name} is no SummaryDescription", got=repr(text)[:80]
        ) from error
