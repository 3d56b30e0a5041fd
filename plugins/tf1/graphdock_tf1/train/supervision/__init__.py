"""Sessions that are made ready, watched over and made again: monitored sessions, and the older Supervisor."""
