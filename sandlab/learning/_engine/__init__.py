"""The training loop: batches, gradients, updates, evaluations, checkpoints."""
