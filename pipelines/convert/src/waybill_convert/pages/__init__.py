"""The pipeline's pages. They call the same services as the API, and work without scripts.

`upload` is `/`, `queue` is `/queue`, `review` is `/review/{id}`. The modules beside them choose what a page says,
`templates` arrange it, and `languages` has the words.
"""
