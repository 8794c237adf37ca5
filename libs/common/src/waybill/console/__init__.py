"""What `waybill` commands share: exit codes, tables, durations as people type them, and the way to the database."""
