"""The convert pipeline: one PDF in, one XML out.

`pipeline` says what it brings to each service. `api` and `pages` receive documents and show them, `service` and
`review_service` say what may be done with them, and `repository` has all the SQL. `handlers` do the work in the worker.
"""
