"""What runs inside a parser. It imports nothing of the service: no settings, no log, no asyncio.

This module stays empty, so that a parser starts fast.
"""
