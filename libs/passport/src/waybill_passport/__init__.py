"""Battery passports: facts and rules become a signed passport that anybody can check and compile again.

Pure: no database, no network, no clock, no randomness. The same input gives the same bytes everywhere. `canonical` says
how JSON becomes bytes, `digests` how bytes become hashes; `facts`, `rules` and `receipt` are what is hashed and signed.
"""
