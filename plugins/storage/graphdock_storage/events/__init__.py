"""Event files, which TensorBoard reads: the messages in them, the records that hold them, and the writer that fills them.

This package knows bytes, arrays and files; no graph and no session. Kernels of summary ops call it, and so do the functions of
``tf.summary``. It needs no library: messages are :mod:`graphdock_storage.events.message`'s own.
"""
