"""``tf.estimator``: models as functions, trained, evaluated, asked and exported over monitored sessions."""
