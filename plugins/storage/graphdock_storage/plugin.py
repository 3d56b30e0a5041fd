"""The plugin: kernels of the ops that write and read files. They work in host memory, for every backend."""
