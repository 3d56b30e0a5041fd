"""Linear operators (``tf.linalg.LinearOperator``): matrices that are known by what they do, with the structure that they have."""
