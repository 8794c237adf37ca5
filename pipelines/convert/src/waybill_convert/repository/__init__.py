"""All SQL on the convert pipeline's tables, and nowhere else.

`conversions`: the rows, from upload to deletion. `details`: the columns an owner sees. `listing`: lists, changes and
counts. `results`: published files. `revisions`: what people corrected. `durations`: how long conversions take.
`retention`: what is past its age. `erasure`: forgetting somebody.
"""
