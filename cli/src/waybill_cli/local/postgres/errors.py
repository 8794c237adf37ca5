"""Errors of the embedded Postgres. Their messages are for the person at the terminal."""


class PostgresError(Exception):
    """The embedded Postgres cannot do what was asked. The message says what to do next."""


class PostgresInUseError(PostgresError):
    """Another process runs the server of this data directory."""
