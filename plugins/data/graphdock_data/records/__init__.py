"""Records: TFRecord files, Examples and what they hold, and files as a whole."""
