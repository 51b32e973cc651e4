"""Tests of the executor, with real processes."""
