"""The chapter of programs, protocols and classes."""
