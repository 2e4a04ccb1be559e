"""Dyck languages: models."""
