"""Fixtures that start the whole product on a database of its own, for tests that stop and start its parts."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

from conftest import on_server
from support.customers import Customer
from support.stack import Stack

_numbers = itertools.count()

MakeStack = Callable[..., Awaitable[Stack]]


@pytest.fixture
async def make_stack(server_url: str, template: str, tmp_path: Path) -> AsyncIterator[MakeStack]:
    """Returns a function that starts the named services with these settings, on a database of their own."""
    name = f"waybill_convert_{os.getpid()}_{next(_numbers)}"
    connection = await asyncpg.connect(server_url)
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    stacks: list[Stack] = []

    async def make(*services: str, **settings: str) -> Stack:
        settings = {"WAYBILL_API_UPLOADS_PER_MINUTE": "1000", **settings}
        stack = Stack(on_server(server_url, name), tmp_path, shared_imports=True, **settings)
        stacks.append(stack)
        await stack.start_all(*services)
        return stack

    yield make
    for stack in stacks:
        stack.close()
    await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    await connection.close()


@pytest.fixture
async def customer() -> AsyncIterator[Callable[[Stack], Customer]]:
    """Returns a function that makes visitors with a session's cookie but without a browser."""
    made: list[Customer] = []

    def come(stack: Stack) -> Customer:
        made.append(Customer(stack.url))
        return made[-1]

    yield come
    for each in made:
        await each.leave()
