"""Tests of taskgraph; the folders mirror those of the package."""
