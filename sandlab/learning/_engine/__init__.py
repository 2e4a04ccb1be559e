"""How `train` and `stream` work: a `Loop` runs the `Step` of the members on the batches of a `Source`."""
