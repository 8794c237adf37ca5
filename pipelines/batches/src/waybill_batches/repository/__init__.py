"""All SQL on batches' tables: `batches` and `files` write, `listing` and `figures` read, `summaries` counts, and
`retention` and `erasure` are for the janitor.

Who may see a row is the caller's to check where a function does not take an owner.
"""
