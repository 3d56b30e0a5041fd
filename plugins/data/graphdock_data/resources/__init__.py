"""Resources of the data plugin, which kernels work on: tables, queues and their kin. They know no graph."""
