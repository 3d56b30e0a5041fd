"""What commands of graphdock and of plugins share on the command line; needs click, so that no kernel imports it."""
