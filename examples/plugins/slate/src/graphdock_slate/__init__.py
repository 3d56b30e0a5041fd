"""The slate device: memory, queues, events and kernels in C."""
