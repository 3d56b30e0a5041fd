"""What ``tf.summary`` is made of: operations that make summaries, and what writes and reads event files."""
