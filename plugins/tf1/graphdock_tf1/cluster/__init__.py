"""Jobs and tasks of several machines as programs write them down: device names, specifications of clusters, who gets a variable."""
