"""Mixing, dependence and consistency of conditionals; repeats, attention and BLEU of translations."""
