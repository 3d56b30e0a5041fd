"""The dataflow executor: see :mod:`graphdock_dataflow.executor`."""
