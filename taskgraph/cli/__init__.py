"""The command line: one file per verb; `console` is the only place that prints."""
