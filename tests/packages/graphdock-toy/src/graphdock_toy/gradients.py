"""Gradients of the toy's op."""


def scale(op, grad_y):
    """x: the gradient, scaled by the same number."""
    from graphdock_toy import scale as again

    return again(grad_y, factor=op.get_attr("factor"))
