"""Mappings: the language, loading, and the explanation of mistakes."""
