"""The pipeline's pages. They call the same services as the API, and work without a script.

`upload` is `/`, `queue` is `/queue`, `review` is `/review/{id}`. The modules beside them choose what a page says,
`templates` where it stands, and `languages` has the words.
"""
