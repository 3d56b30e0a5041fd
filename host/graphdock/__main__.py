"""``python -m graphdock``."""

from graphdock.cli import main

if __name__ == "__main__":
    main()
