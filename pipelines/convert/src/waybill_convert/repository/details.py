"""What an owner sees of a conversion: the one list of columns behind `GET /api/jobs`, the pages and the stream.

A statement names `DETAILS` where it completes the rows of a page, after it has found them by an index of `conversions`;
the engine's jobs are joined by their primary key, for those rows only.
"""

from __future__ import annotations

from waybill.db.column_types import readable_time

DETAILS = f"""
SELECT conversions.job_id, jobs.tenant, conversions.owner, conversions.original_name, conversions.bytes,
       COALESCE(conversions.used_mapping, conversions.mapping) AS mapping,
       conversions.mapping AS requested_mapping, conversions.recognition::text AS recognition, conversions.loss,
       conversions.status, conversions.reused_at, conversions.upload_key,
       conversions.upload_borrowed, conversions.upload_deleted_at, conversions.upload_missing_at,
       conversions.deleted_at, conversions.revision, conversions.pages,
       conversions.doubts, conversions.approved_at, conversions.approved_by,
       conversions.listed_at IS NOT NULL AS listed, COALESCE(conversions.listed_at, jobs.created_at) AS listed_at,
       GREATEST(jobs.updated_at, conversions.listed_at, conversions.changed_at) AS updated_at,
       jobs.state, jobs.attempts, jobs.max_attempts, {readable_time("jobs.run_at")} AS run_at,
       jobs.progress, jobs.progress_message,
       jobs.cancel_requested_at, jobs.error_code, jobs.error_message, jobs.error_detail,
       jobs.created_at, jobs.started_at, jobs.finished_at, jobs.pinned_at, jobs.traceparent,
       extract(epoch FROM now() - jobs.started_at)::float8 AS running_for
  FROM conversions
  JOIN all_jobs AS jobs ON jobs.id = conversions.job_id
"""  # noqa: S608 - made of constants
