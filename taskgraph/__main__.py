"""``python -m taskgraph`` is the same as ``taskgraph``."""

from taskgraph.cli.main import main

main()
