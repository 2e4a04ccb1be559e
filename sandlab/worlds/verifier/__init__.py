"""Generation guided by a verifier: worlds."""
