"""Studies of progressive distillation."""
