"""Models that write all positions at once: the encoder-decoder and the transformer of the theory."""
