"""The same keyboard that the tests of the command line use."""

from tests.cli.conftest import tg

__all__ = ["tg"]
