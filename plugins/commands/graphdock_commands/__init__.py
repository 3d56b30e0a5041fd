"""Commands of ``graphdock`` that say what is installed, what of it works, and what a program's plan does with it."""
