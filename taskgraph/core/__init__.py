"""The rules of a task graph: pure, without disk, clock, processes or logging."""
