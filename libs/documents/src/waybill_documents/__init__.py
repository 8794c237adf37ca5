"""Documents to structured data, and on to XML by a mapping.

Pure: it reads a file and returns values. Nothing here opens a connection, asks for the time or keeps state between two
documents, so that a sandboxed process can run it and be thrown away.
"""
