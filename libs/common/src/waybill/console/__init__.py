"""What all `waybill` commands share: exit codes, tables, durations, and the connection to the database."""
