"""What runs inside a parsing process. It imports nothing of the service: no settings, no log, no asyncio.

Kept empty, so that starting a process costs no more than it must.
"""
