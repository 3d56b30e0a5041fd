"""Oracles: the sums of the specs as they are written, one element after the other."""

import numpy as np

from graphdock_so3.coefficients import table


def tensor_product(v1, v2, L):
    out = [np.zeros(v.shape) for v in v1]
    for (l1, m1, l2, m2, l, m), c in zip(*table(L), strict=True):
        out[l][:, m] += c * v1[l1][:, m1] * v2[l2][:, m2]
    return [o.astype(v.dtype) for o, v in zip(out, v1, strict=True)]


def tensor_product_grad(grad_out, v1, v2, L):
    first, second = [np.zeros(v.shape) for v in v1], [np.zeros(v.shape) for v in v2]
    for (l1, m1, l2, m2, l, m), c in zip(*table(L), strict=True):
        first[l1][:, m1] += c * grad_out[l][:, m] * v2[l2][:, m2]
        second[l2][:, m2] += c * grad_out[l][:, m] * v1[l1][:, m1]
    return [o.astype(v.dtype) for o, v in zip([*first, *second], [*v1, *v2], strict=True)]
