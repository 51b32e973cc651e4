"""Tests of the folder on disk, with real files, real processes and real faults."""
