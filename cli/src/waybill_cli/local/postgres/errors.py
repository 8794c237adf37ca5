"""What can go wrong with the embedded Postgres, in words for the person in front of the terminal."""


class PostgresError(Exception):
    """The embedded Postgres cannot do what was asked; the message says what to do next."""


class PostgresInUseError(PostgresError):
    """Another live process already runs the server of this data directory."""
