"""`waybill backup` and `waybill restore`: everything a database and its storage hold, in a folder and back.

A backup is a folder: `database.dump`, `storage/` with `objects.jsonl`, and `manifest.json`, which has the hashes of all
of it. `backup_folder` knows where backups lie, `manifest` what one says about itself, `database_dump` and
`storage_copy` make and read the two halves, `restored_database` makes a dump the database, and `withdrawals` keeps what
was withdrawn since from coming back.
"""

from waybill_cli.backup.command import app

__all__ = ["app"]
