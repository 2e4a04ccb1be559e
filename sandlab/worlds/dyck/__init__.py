"""Dyck languages: worlds."""
