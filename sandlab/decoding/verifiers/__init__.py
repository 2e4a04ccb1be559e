"""Verifiers and value functions: how good is a prefix?"""
