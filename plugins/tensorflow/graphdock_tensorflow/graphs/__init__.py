"""TensorFlow's graphs on disk: GraphDefs, meta graphs and SavedModels, as protocol buffers and as their text.

The messages are those of the library ``protobuf`` with schemas of our own making (:mod:`~graphdock.messages`). What they
say is turned into graphdock's plain data by :mod:`~graphdock_tensorflow.graphs.reading` and out of it by
:mod:`~graphdock_tensorflow.graphs.writing`:
data to data, so that everything behind it (order, checks, bodies, JSON) is that of graphdock's own files.
"""
