"""What this pipeline tells the others: see `waybill.changes.publish`."""

UPLOADED = "convert.uploaded"
"""A document became a job. Data: `original_name`, `mapping`."""
COMPLETED = "convert.completed"
"""A job has a result. Data: `pages`."""
