"""Transformation semigroups, finite groups, and the decomposition of an automaton into them."""
