"""Studies of noise-contrastive estimation: why its loss is flat, and what normalised descent does about it."""
