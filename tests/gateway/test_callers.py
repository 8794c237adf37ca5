"""The gateway answers services that know its secret and nobody else, and its clients use no stranger's answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from gateway.conftest import StartGateway
from support.forked import Forked
from support.gateway import Gateway, assert_problem, told
from support.sick_gateway import answering, sick_gateway
from waybill.errors import GatewayMistrusted, GatewayUnavailable
from waybill.failures import classify
from waybill.gateway_client.connections import GatewayConnections
from waybill.http.proofs import ask
from waybill_convert.clients.gateway_check import check_gateway
from waybill_convert.settings import ConvertSettings

SECRET, NEXT, OTHER = ("s" * 40, "n" * 40, "o" * 40)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("closed"), gateway_secret=f"{NEXT},{SECRET}", gateway_open="false")
    yield gateway
    gateway.close()


def proof(method: str, path: str, secret: str = SECRET) -> dict[str, str]:
    return ask(secret.encode(), method, path)[1]


async def introduce(url: str, *secrets: str) -> None:
    connections = GatewayConnections(url, 30, [secret.encode() for secret in secrets])
    try:
        await connections.introduce()
    finally:
        await connections.close()


async def send(url: str, *secrets: str) -> httpx.Response:
    async def nothing() -> AsyncIterator[bytes]:
        yield b""

    connections = GatewayConnections(url, 30, [secret.encode() for secret in secrets])
    try:
        async with connections.post("/process", content=nothing(), headers={}) as response:
            await response.aread()
            return response
    finally:
        await connections.close()


def test_probes_are_for_everybody(closed: Gateway) -> None:
    assert closed.client.get("/livez").json() == {"status": "alive"}
    assert closed.client.get("/readyz").json() == {"status": "ready"}


def test_whoever_does_not_know_the_secret_is_told_which_setting_it_is(closed: Gateway) -> None:
    for answer in (
        closed.client.get("/mappings"),
        closed.client.get("/mappings", headers={"Authorization": f"Bearer {SECRET}"}),
        closed.client.get("/mappings", headers=proof("GET", "/mappings", OTHER)),
        closed.client.get("/nowhere"),
        closed.send(told()),
        closed.send(b"%PDF-" + b"x" * 5_000_000),
        closed.client.get("/livez", headers=proof("GET", "/livez", OTHER)),
    ):
        assert "WAYBILL_GATEWAY_SECRET" in assert_problem(answer, 401, "UNAUTHORIZED")["detail"]
        assert answer.headers["www-authenticate"] == "Waybill-Proof"
        assert "waybill-proof" not in answer.headers


@pytest.mark.parametrize("secret", [SECRET, NEXT])
def test_each_of_two_secrets_is_accepted_and_a_request_only_once(closed: Gateway, secret: str) -> None:
    known = proof("GET", "/mappings", secret)
    assert closed.client.get("/mappings", headers=known).status_code == 200
    again = assert_problem(closed.client.get("/mappings", headers=known), 401, "UNAUTHORIZED")
    assert again["key"] == "gateway.secret_repeated"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8080"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-origin"},
    ],
)
def test_no_web_page_may_ask_whatever_it_knows(closed: Gateway, gateway: Gateway, headers: dict[str, str]) -> None:
    assert_problem(closed.send(told(), headers={**headers, **proof("POST", "/process")}), 403, "FORBIDDEN")
    assert_problem(gateway.send(told(), headers=headers), 403, "FORBIDDEN")


async def test_a_caller_and_a_gateway_with_the_same_secret_work_together(closed: Gateway) -> None:
    for secrets in ((SECRET,), (NEXT, SECRET)):
        await introduce(closed.url, *secrets)
        assert (await send(closed.url, *secrets)).status_code == 400, "an empty form is refused, with a proof"


async def test_another_secret_is_a_mistake_in_the_settings_and_costs_no_attempt(closed: Gateway) -> None:
    for secrets in ((OTHER,), ()):
        with pytest.raises(GatewayMistrusted, match="WAYBILL_GATEWAY_SECRET") as refused:
            await send(closed.url, *secrets)
        failure = classify(refused.value)
        assert (failure.away, failure.of_dependency, failure.dependency) == (True, True, "gateway")
        settings = ConvertSettings(gateway_url=closed.url, gateway_secret=",".join(secrets) or None)
        assert "WAYBILL_GATEWAY_SECRET" in (await check_gateway(settings) or "")
    assert await check_gateway(ConvertSettings(gateway_url=closed.url, gateway_secret=SECRET)) is None


@pytest.mark.parametrize("status", [200, 400, 401, 422])
async def test_a_stranger_at_the_gateways_address_gets_no_document_and_is_not_believed(status: int) -> None:
    async with sick_gateway(answering(status, b'{"detail": "Your document is bad."}')) as stranger:
        with pytest.raises(GatewayMistrusted):
            await send(stranger.url, SECRET)
        assert [headers.get("content-type") for headers, _ in stranger.requests] == [None], "only a greeting was sent"
        assert SECRET not in str(stranger.requests)


async def test_a_proxy_that_finds_no_gateway_is_an_ordinary_outage() -> None:
    async with sick_gateway(answering(503, b"", {"Retry-After": "3600"})) as proxy:
        with pytest.raises(GatewayUnavailable) as outage:
            await send(proxy.url, SECRET)
    assert not isinstance(outage.value, GatewayMistrusted)
    assert outage.value.retry_after is None, "a stranger does not tell us how long to wait"


async def test_an_open_gateway_with_a_secret_serves_both_sorts_of_callers(start_gateway: StartGateway) -> None:
    gateway = start_gateway(gateway_secret=SECRET)
    assert gateway.send(told()).status_code == 200
    await introduce(gateway.url, SECRET)
    with pytest.raises(GatewayMistrusted):
        await introduce(gateway.url, OTHER)


def test_a_gateway_without_a_secret_does_not_start(tmp_path: Path) -> None:
    settings = {"WAYBILL_HOME": str(tmp_path), "WAYBILL_LOG_FORMAT": "json"}
    code, said = Forked("waybill_gateway", folder=tmp_path, **settings).ended()
    assert code == 2
    assert "WAYBILL_GATEWAY_SECRET" in said
    assert "WAYBILL_GATEWAY_OPEN" in said
