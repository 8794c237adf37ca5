"""`waybill submit`: documents to the API, and their results back.

`batches` is what is sent, `client` how, and `command` what a person sees meanwhile.
"""
