"""Neural networks: activations, losses of logits, samplers of classes, tables of rows, gates of cells."""
