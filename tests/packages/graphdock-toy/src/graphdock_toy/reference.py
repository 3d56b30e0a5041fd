"""The oracle of the toy's op, by repeated Python arithmetic."""

import numpy as np


def scale(x, factor):
    flat = [x.dtype.type(float(v) * factor) for v in x.reshape(-1)]
    return np.array(flat, x.dtype).reshape(x.shape)
