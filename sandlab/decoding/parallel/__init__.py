"""Gibbs samplers and other parallel decoders, hitting times, iterative refinement, beam search."""
