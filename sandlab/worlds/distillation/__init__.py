"""Sparse and hierarchical parity, probabilistic grammars with exact oracles, and masked text."""
