"""`taskgraph run`: observe, decide, act, wait, until nothing can start without a person."""
