"""`waybill submit`: uploads documents to the API and downloads their results.

`command` has the steps, `requests` packs the files, `api_client` sends them, `submissions` tracks what became of each,
and `progress_view` shows it.
"""
