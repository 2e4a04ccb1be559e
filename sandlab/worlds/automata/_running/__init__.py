"""Running automata on many words at once."""
