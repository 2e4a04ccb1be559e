"""Dyck languages: lenses."""
