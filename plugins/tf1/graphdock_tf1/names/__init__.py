"""Tables of public names, a module per family. A module is joined by lying in this folder."""
