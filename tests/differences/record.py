"""Asks TensorFlow (compat.v1 of any version) what the tables of this folder ask: ``python tests/differences/record.py empties``."""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from pathlib import Path

FOLDER = Path(__file__).parent


def main(table: str) -> None:
    os.environ |= {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "0",
    }  # whose kernels abort the process at empty products
    warnings.simplefilter("ignore")
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity("ERROR")
    sys.path.insert(0, str(FOLDER))
    questions, config = importlib.import_module(table), tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = questions.PLAIN
    answers = questions.answers(tf, lambda: tf.Session(config=config))
    lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in sorted(answers.items())]
    (FOLDER / f"{table}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(answers)} answers")


if __name__ == "__main__":
    main(sys.argv[1])
