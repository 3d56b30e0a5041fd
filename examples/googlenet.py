"""GoogLeNet, twenty-two layers of which nine are inception modules, trained with momentum.

Szegedy and others, "Going deeper with convolutions", 2014: the shapes of convnet-benchmarks, without response normalisation,
dropout and the two auxiliary classifiers.

    python -m examples.googlenet --batch 8 --steps 10
"""

from __future__ import annotations

from typing import Any

import graphdock as tf

from examples import convnet
from examples.convnet import affine, conv, max_pool
from examples.training import Training

SIZE = 224

#: Name -> outputs of 1x1; 3x3 and its reduction; 5x5 and its reduction; the projection of the pool.
MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def inception(x: Any, widths: tuple[int, ...], name: str) -> Any:
    """Four branches side by side, joined along the channels."""
    one, small3, three, small5, five, pooled = widths
    with tf.variable_scope(name):
        branches = [
            conv(x, 1, one, "1x1"),
            conv(conv(x, 1, small3, "3x3_reduce"), 3, three, "3x3"),
            conv(conv(x, 1, small5, "5x5_reduce"), 5, five, "5x5"),
            conv(max_pool(x, 3, 1, "SAME"), 1, pooled, "pool_proj"),
        ]
        return tf.concat(branches, 3)


def inference(images: Any, classes: int = 1000, narrow: int = 1) -> Any:
    """Logits [N, classes] of images [N, 224, 224, 3]."""
    x = conv(images, 7, 64 // narrow, "conv1", stride=2)
    x = max_pool(x, 3, 2, "SAME")
    x = conv(x, 1, 64 // narrow, "conv2_reduce")
    x = conv(x, 3, 192 // narrow, "conv2")
    x = max_pool(x, 3, 2, "SAME")
    for name, widths in MODULES.items():
        x = inception(x, tuple(max(1, width // narrow) for width in widths), f"inception_{name}")
        if name in ("3b", "4e"):
            x = max_pool(x, 3, 2, "SAME")
    x = tf.nn.avg_pool(x, [1, 7, 7, 1], [1, 1, 1, 1], "VALID")
    return affine(x, classes, "fc", relu=False)


def main(arguments: list[str] | None = None) -> Training:
    return convnet.main(__doc__, inference, SIZE, 8, arguments)


if __name__ == "__main__":
    main()
