"""AlexNet with one tower, trained with momentum.

Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014: the shapes of convnet-benchmarks, without
response normalisation and dropout.

    python -m examples.alexnet --batch 16 --steps 20
"""

from __future__ import annotations

from typing import Any

from examples import convnet
from examples.convnet import classified, conv, max_pool
from examples.training import Training

SIZE = 227


def inference(images: Any, classes: int = 1000, narrow: int = 1) -> Any:
    """Logits [N, classes] of images [N, 227, 227, 3]."""
    x = conv(images, 11, 64 // narrow, "conv1", stride=4, padding="VALID")
    x = max_pool(x, 3, 2)
    x = conv(x, 5, 192 // narrow, "conv2")
    x = max_pool(x, 3, 2)
    x = conv(x, 3, 384 // narrow, "conv3")
    x = conv(x, 3, 256 // narrow, "conv4")
    x = conv(x, 3, 256 // narrow, "conv5")
    x = max_pool(x, 3, 2)
    return classified(x, (4096 // narrow, 4096 // narrow), classes)


def main(arguments: list[str] | None = None) -> Training:
    return convnet.main(__doc__, inference, SIZE, 16, arguments)


if __name__ == "__main__":
    main()
