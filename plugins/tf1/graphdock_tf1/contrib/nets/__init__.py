"""Networks of ``tf.contrib.slim.nets``, in slim's layers, with the names of variables that published checkpoints have."""
