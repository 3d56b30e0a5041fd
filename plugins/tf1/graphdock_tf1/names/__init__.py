"""Tables of public names, a module per field. A module is joined by lying in this folder."""
