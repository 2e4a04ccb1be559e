"""Finite automata as worlds: any table, named families, products, regular expressions."""
