"""Tasks on several processes and machines: a transport on ZeroMQ."""
