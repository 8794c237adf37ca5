"""Mappings: the language, and the ones that are shipped."""
