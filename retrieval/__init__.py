"""The read path: words and vectors to ranked hits with their provenance."""
