"""Parts of ``tf.summary``: operations that make summaries, and what writes and reads event files."""
