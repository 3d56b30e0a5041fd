"""VGG, net A of eleven layers, trained with momentum.

Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", 2014.

    python -m examples.vgg --batch 4 --steps 10
"""

from __future__ import annotations

from typing import Any

from examples import convnet
from examples.convnet import classified, conv, max_pool
from examples.training import Training

SIZE = 224

#: Outputs of the 3x3 convolutions; a pool ends each group.
GROUPS = ((64,), (128,), (256, 256), (512, 512), (512, 512))


def inference(images: Any, classes: int = 1000, narrow: int = 1) -> Any:
    """Logits [N, classes] of images [N, 224, 224, 3]."""
    x = images
    for group, widths in enumerate(GROUPS, 1):
        for number, width in enumerate(widths, 1):
            x = conv(x, 3, width // narrow, f"conv{group}_{number}")
        x = max_pool(x, 2, 2)
    return classified(x, (4096 // narrow, 4096 // narrow), classes)


def main(arguments: list[str] | None = None) -> Training:
    return convnet.main(__doc__, inference, SIZE, 4, arguments)


if __name__ == "__main__":
    main()
