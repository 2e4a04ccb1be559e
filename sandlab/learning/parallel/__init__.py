"""Pseudolikelihood and its exact variance, mask laws, bounds, and training by iterative refinement."""
