"""OverFeat, its fast model, trained with momentum.

Sermanet and others, "OverFeat: integrated recognition, localization and detection using convolutional networks", 2013: the shapes
of convnet-benchmarks. It has 146 million weights, 113 of them in its first fully connected layer.

    python -m examples.overfeat --batch 4 --steps 10
"""

from __future__ import annotations

from typing import Any

from examples import convnet
from examples.convnet import classified, conv, max_pool
from examples.training import Training

SIZE = 231


def inference(images: Any, classes: int = 1000, narrow: int = 1) -> Any:
    """Logits [N, classes] of images [N, 231, 231, 3]."""
    x = conv(images, 11, 96 // narrow, "conv1", stride=4, padding="VALID")
    x = max_pool(x, 2, 2)
    x = conv(x, 5, 256 // narrow, "conv2", padding="VALID")
    x = max_pool(x, 2, 2)
    x = conv(x, 3, 512 // narrow, "conv3")
    x = conv(x, 3, 1024 // narrow, "conv4")
    x = conv(x, 3, 1024 // narrow, "conv5")
    x = max_pool(x, 2, 2)
    return classified(x, (3072 // narrow, 4096 // narrow), classes)


def main(arguments: list[str] | None = None) -> Training:
    return convnet.main(__doc__, inference, SIZE, 4, arguments)


if __name__ == "__main__":
    main()
