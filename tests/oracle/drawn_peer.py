"""TensorFlow's side of the comparison of drawn edges: GraphDefs and feeds come in, what the graphs give goes out.

Run as a script by the peer's Python. Requests and answers are pickles, one after the other, on standard input and output. A request
is ``(graph, runs)``: a serialised GraphDef, and for each run the names of what is fetched, and name -> array. An answer is
``("gives", arrays)``, or the word and the message of a refusal. Where TensorFlow ends its process for an input, as its checks do,
the answer is ``("ends", "")``, and a new child answers what comes then: a fork of the one that has imported TensorFlow.
"""

from __future__ import annotations

import os
import pickle
from typing import Any


def answer(tf: Any, sessions: dict[bytes, Any], request: tuple[bytes, list[tuple[list[str], Any]]]) -> tuple[str, Any]:
    """Answer of TensorFlow to a request. ``sessions``: of the graph that came last, by its bytes."""
    graph, runs = request
    errors = tf.errors
    try:
        if graph not in sessions:
            sessions.clear()
            read = tf.GraphDef.FromString(graph)
            with tf.Graph().as_default() as made:
                try:
                    tf.import_graph_def(read, name="")
                except (errors.InvalidArgumentError, ValueError) as error:
                    return "lacks", str(error)
            options = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
            options.graph_options.rewrite_options.disable_meta_optimizer = True
            options.graph_options.optimizer_options.opt_level = -1
            sessions[graph] = tf.Session(graph=made, config=options)
        session = sessions[graph]
        given = [session.run(fetches, feeds) for fetches, feeds in runs]
        return "gives", [value for values in given for value in values if value is not None]
    except (errors.UnimplementedError, errors.NotFoundError) as error:
        return "lacks", str(error)
    except errors.InvalidArgumentError as error:
        lacking = "No OpKernel was registered" in str(error) or "no kernel" in str(error)
        return "lacks" if lacking else "refuses", _told(error)
    except errors.AbortedError as error:  # of a library of kernels, which has none for this
        return "lacks", _told(error)
    except (errors.OpError, ValueError, TypeError, KeyError) as error:
        return "fails", f"{type(error).__name__}: {_told(error)}"


def _told(error: Exception) -> str:
    """The kernel's own words, which come before the names of its node."""
    lines = str(error).split("[[{{node")[0].strip().splitlines()
    return lines[-1] if lines else ""


def _serve(tf: Any, out: Any) -> None:
    """Answer until the requests end."""
    sessions: dict[bytes, Any] = {}
    with os.fdopen(os.dup(0), "rb") as requests:
        while True:
            try:
                request = pickle.load(requests)
            except EOFError:
                return
            pickle.dump(answer(tf, sessions, request), out)
            out.flush()


def _main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    while True:
        child = os.fork()
        if child == 0:
            _serve(tf, out)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return
        pickle.dump(("ends", ""), out)
        out.flush()


if __name__ == "__main__":
    _main()
