"""Input pipelines: queue runners, producers, batches and readers. Names, arguments and defaults are TensorFlow 1's."""
