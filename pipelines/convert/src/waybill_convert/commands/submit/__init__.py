"""`waybill submit`: documents to the API, and their results back.

`command` is the order of things, `batches` what is sent, `client` how, `submissions` what became of each file, and
`showing` what a person sees of it.
"""
