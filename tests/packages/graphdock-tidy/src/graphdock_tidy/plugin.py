"""Hooks of the package. The passes themselves are imported when a plan needs them."""

from graphdock.contracts import Pass, hookimpl

PASSES = "graphdock_tidy.passes"


@hookimpl
def register_passes():
    return [
        Pass("keep_loops", "translate", 5, "keeps loops as they are, and counts them", f"{PASSES}:keep_loops"),
        Pass("negations", "simplify", 45, "forwards what is negated twice", f"{PASSES}:negations", _negates),
        Pass("doublings", "rewrite", 50, "adds what would be doubled", f"{PASSES}:doublings"),
        Pass("checked_logs", "placed", 10, "checks what logarithms give", f"{PASSES}:checked_logs", _is_log),
        Pass("decays", "chosen", 20, "one kernel for the exponential of what is negated", f"{PASSES}:decays"),
        Pass("large_first", "memory", 10, "computes what is large first", f"{PASSES}:large_first"),
    ]


def _negates(node):
    return node.op == "Neg"


def _is_log(node):
    return node.op == "Log"
