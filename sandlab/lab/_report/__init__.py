"""What was found, for readers: progress on the screen, the static report, published results."""
