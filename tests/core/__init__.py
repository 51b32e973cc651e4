"""Tests of the pure core: tables of facts in, decisions out."""
