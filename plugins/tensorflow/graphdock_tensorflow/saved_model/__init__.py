"""SavedModels: graphs with their variables, signatures and files, in a folder."""
