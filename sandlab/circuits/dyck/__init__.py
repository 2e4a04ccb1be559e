"""Dyck languages: circuits."""
