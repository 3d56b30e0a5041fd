"""An embedding on servers has the losses of one process; between the tasks rows travel, never a shard."""

from __future__ import annotations

import numpy as np

from examples import embedding_on_servers


def test_losses_are_those_of_one_process_and_rows_travel():
    found, explanation = embedding_on_servers.together(8, 2)
    one, _ = embedding_on_servers.train(8, 2)
    np.testing.assert_allclose(found, one, rtol=1e-6, atol=1e-6)
    assert one[-1] < one[0] / 2
    edges = [e for e in explanation.facts()["edges"] if e["from"] != e["to"] and e["dtype"] == "float32"]
    assert {(e["from"][5], e["to"][5]) for e in edges} == {
        ("p", "w"),
        ("w", "p"),
    }  # so many rows as ids, or their gradients
    assert len(edges) == 2 * 2 * 3 and all(e["bytes"] is None for e in edges)


def test_it_says_its_losses(capsys):
    assert embedding_on_servers.main(["--steps", "1", "--servers", "2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-2].startswith("one process [") and said[-1].startswith("2 servers   [")
