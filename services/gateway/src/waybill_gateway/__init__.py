"""The gateway turns documents into JSON or XML. It parses each one in a process that may die without harm."""
