"""Entry point of the ``tensorflow`` plugin: TensorFlow's file formats and its catalogue of names. It has no op and no kernel."""
