"""Parameters are counted by scope, and the text goes where it is told to."""

import graphdock as tf
import pytest
from graphdock.errors import UnimplementedError

analyzer = tf.contrib.tfprof.model_analyzer


def test_parameters_by_scope(tmp_path, capsys):
    with tf.variable_scope("net"):
        tf.get_variable("w", [3, 4])
        tf.get_variable("step", [5], trainable=False)
        with tf.variable_scope("inner"):
            tf.get_variable("b", [7])
    root = analyzer.print_model_analysis(tf.get_default_graph())
    assert root.total_parameters == 19 and [n.name for n in root.children[0].children] == ["net/inner", "net/w"]
    assert capsys.readouterr().out.splitlines() == [
        "_TFProfRoot (19 params)",
        "  net (19 params)",
        "    net/inner (7 params)",
        "      net/inner/b (7, 7 params)",
        "    net/w (3x4, 12 params)",
    ]
    options = analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS.copy()
    options["dump_to_file"] = str(tmp_path / "params")
    analyzer.print_model_analysis(tf.get_default_graph(), tfprof_options=options)
    assert (tmp_path / "params").read_text().startswith("_TFProfRoot (19 params)\n") and not capsys.readouterr().out
    with pytest.raises(UnimplementedError, match="counts parameters"):
        analyzer.print_model_analysis(tf.get_default_graph(), tfprof_options=analyzer.FLOAT_OPS_OPTIONS)
