"""Images: boxes, files, colours, geometry, sizes, measures."""
