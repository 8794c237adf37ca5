"""The whole product over a database of its own, started and stopped by the test."""

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
    """A database and the services named, with these settings."""
    name = f"waybill_convert_{os.getpid()}_{next(_numbers)}"
    connection = await asyncpg.connect(server_url)
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    stacks: list[Stack] = []

    async def make(*services: str, **settings: str) -> Stack:
        stack = Stack(on_server(server_url, name), tmp_path, WAYBILL_API_UPLOADS_PER_MINUTE="1000", **settings)
        stacks.append(stack)
        for service in services:
            stack.start(service)
        for service in services:
            if service != "worker":  # it has no door; its jobs show that it is there
                await stack.ready(service)
        return stack

    yield make
    for stack in stacks:
        stack.close()
    await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    await connection.close()


@pytest.fixture
async def customer() -> AsyncIterator[Callable[[Stack], Customer]]:
    """Somebody with a browser's cookie and no browser."""
    made: list[Customer] = []

    def come(stack: Stack) -> Customer:
        made.append(Customer(stack.url))
        return made[-1]

    yield come
    for each in made:
        await each.leave()
