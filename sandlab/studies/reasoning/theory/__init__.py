"""Theory of LEGO: studies without trained transformers."""
