"""The stress card of an architecture: its battery, its measurement, its page."""
