"""The pipeline's pages. They call the same services as the API, and work without scripts.

`batch_list` is `/batches`, `batch_page` is `/batches/{id}` and what is below it. The modules beside them choose what a
page says, `templates` arrange it, and `languages` has the words.
"""
