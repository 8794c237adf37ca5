"""The gateway: documents in, JSON or XML out, each parsed in a process that may die."""
