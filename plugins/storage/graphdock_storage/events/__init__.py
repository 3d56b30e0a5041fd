"""Event files, which TensorBoard reads: the messages in them, the records that hold them, and the writer that fills them.

This package knows bytes, arrays and files; no graph and no session. Kernels of summary ops call it, and so do the functions of
``tf.summary``. The messages are :mod:`graphdock.messages`; what runs in every step makes their bytes without one.
"""
