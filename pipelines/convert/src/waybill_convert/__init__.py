"""The convert pipeline: one PDF in, one XML out.

`service` is what may be done, `repository` has all the SQL, `models` the table and what is told about it, `cursors`
what lists go on with, `status` the API's words, `kinds` the job's kind, `estimates` how long it will take.
`reviewing` is looking at what was read and correcting it, `revisions` the SQL of that.
"""
