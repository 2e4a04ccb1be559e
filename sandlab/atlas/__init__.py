"""The web page over the store."""
