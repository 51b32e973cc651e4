"""Tests of the runner, with real processes, signals and files."""
