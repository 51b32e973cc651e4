"""Views of a store: plain data, tables, summaries."""
