"""The platform's branch of the schema: its revisions lie in this folder, in the order of their names."""
