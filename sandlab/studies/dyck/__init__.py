"""Dyck languages: what attention patterns do not say (Wen et al. 2023, "(Un)interpretability of Transformers")."""
