"""The external metrics API as the API server sees it: over TLS, with real certificates."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from support.certificates import Authority
from support.cluster_server import ClusterServer
from support.patience import eventually, until
from waybill import background_tasks
from waybill.cluster import ClusterApi, Informer
from waybill.cluster.resources import CONFIG_MAPS, WORKER_POOLS
from waybill.telemetry.metrics import HTTP_REQUESTS
from waybill.telemetry.small_server import listen
from waybill_operator.metrics_api.application import MetricsApplication
from waybill_operator.metrics_api.certificate import ServingCertificate
from waybill_operator.metrics_api.proxy_trust import TrustSource
from waybill_operator.metrics_api.server import MetricsServer
from waybill_operator.pools.figures import PoolFigures

API = "/apis/external.metrics.k8s.io/v1beta1"
METRIC = f"{API}/namespaces/default/waybill_workers_wanted"
USER = {"X-Remote-User": "system:serviceaccount:kube-system:horizontal-pod-autoscaler"}


class KnownFigures:
    """FleetFigures that a test decides."""

    def __init__(self) -> None:
        self.trouble: str | None = None
        self.wanted: dict[str, int] = {}
        self.asked = 0

    def of(self, pool: str) -> PoolFigures | None:
        if pool not in self.wanted:
            return None
        at = datetime(2026, 3, 1, 12, 0, 5, 900_000, tzinfo=UTC)
        return PoolFigures(self.wanted[pool], 0, 0, None, 0.0, "closed", at)

    async def wait_for(self, pools: list[str], within: float) -> None:
        self.asked += 1


@dataclass
class Served:
    port: int
    figures: KnownFigures
    cluster: ClusterServer
    proxies: Authority
    """Who signs the front proxy's certificate."""
    servers: Authority
    folder: Path

    def client(self, name: str | None = "front-proxy-client", signer: Authority | None = None) -> ssl.SSLContext:
        """What a client trusts and shows; nothing is shown without a name."""
        context = ssl.create_default_context(cadata=self.servers.pem)
        if name is not None:
            certificate, key = (signer or self.proxies).issue(self.folder / f"client-{name}", name)
            context.load_cert_chain(certificate, key)
        return context

    async def get(
        self,
        path: str = METRIC,
        *,
        context: ssl.SSLContext | None = None,
        headers: dict[str, str] | None = None,
        method: str = "GET",
    ) -> tuple[int, Any]:
        connector = aiohttp.TCPConnector(ssl=context or self.client())
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(
                method, f"https://127.0.0.1:{self.port}{path}", headers=USER if headers is None else headers
            ) as answer,
        ):
            return answer.status, json.loads(await answer.read() or b"null")

    async def trust(self, authority: Authority, *names: str) -> None:
        await self.cluster.put(
            CONFIG_MAPS,
            {
                "metadata": {"name": "extension-apiserver-authentication"},
                "data": {
                    "requestheader-client-ca-file": authority.pem,
                    "requestheader-allowed-names": json.dumps(names),
                    "requestheader-username-headers": '["X-Remote-User"]',
                },
            },
            "kube-system",
        )


@asynccontextmanager
async def serving(cluster: ClusterServer, api: ClusterApi, folder: Path) -> AsyncIterator[Served]:
    figures, proxies, servers = KnownFigures(), Authority("front proxies"), Authority("servers")
    trust = TrustSource(api)
    pools = Informer(api, WORKER_POOLS, "default")
    listener = listen("127.0.0.1", 0)
    server = MetricsServer(
        MetricsApplication(figures, pools, trust, namespace="default", prefix="rel-waybill").asgi(),
        ServingCertificate(folder / "serving"),
        trust,
        listener,
        look_every=0.05,
    )
    served = Served(listener.getsockname()[1], figures, cluster, proxies, servers, folder)
    async with (
        server.serving(),
        background_tasks.running(trust.run(), "trust"),
        background_tasks.running(pools.run(), "pools"),
    ):
        await pools.wait_until_listed()
        yield served


@pytest.fixture
async def served(cluster: ClusterServer, api: ClusterApi, tmp_path: Path) -> AsyncIterator[Served]:
    for name in ("default", "heavy"):
        await cluster.put(WORKER_POOLS, {"metadata": {"name": name}, "spec": {}})
    async with serving(cluster, api, tmp_path) as one:
        one.figures.wanted = {"default": 7, "heavy": 0}
        one.servers.issue(tmp_path / "serving", "metrics", server=True)
        await one.trust(one.proxies, "front-proxy-client")

        async def answers() -> bool:
            with contextlib.suppress(aiohttp.ClientError):
                return (await one.get())[0] == 200
            return False

        await eventually(answers)
        yield one


async def test_discovery_is_as_the_api_server_reads_it(served: Served) -> None:
    status, said = await served.get(API)
    assert status == 200
    assert said["kind"] == "APIResourceList"
    assert said["groupVersion"] == "external.metrics.k8s.io/v1beta1"
    [resource] = said["resources"]
    assert resource == {
        "name": "waybill_workers_wanted",
        "singularName": "",
        "namespaced": True,
        "kind": "ExternalMetricValueList",
        "verbs": ["get"],
    }
    assert (await served.get("/apis"))[1]["groups"][0]["name"] == "external.metrics.k8s.io"
    assert (await served.get("/apis/external.metrics.k8s.io"))[1]["kind"] == "APIGroup"


async def test_discovery_is_answered_whatever_is_away(cluster: ClusterServer, api: ClusterApi, tmp_path: Path) -> None:
    """To anybody, before the API server has said whom to believe, and without a database."""
    cluster.refuse("GET", "kube-system", 403, times=-1)
    async with serving(cluster, api, tmp_path) as one:
        one.figures.trouble = "Postgres does not answer."
        one.servers.issue(tmp_path / "serving", "metrics", server=True)
        await cluster.stop()

        async def discovered() -> Any:
            with contextlib.suppress(aiohttp.ClientError):
                return await one.get(API, context=one.client(None), headers={})
            return None

        assert (await eventually(discovered))[0] == 200
        status, said = await one.get(context=one.client(None))
        assert (status, said["reason"]) == (503, "ServiceUnavailable")
        assert "Nobody can be believed yet" in said["message"]


async def test_the_value_is_a_quantity_with_its_time(served: Served) -> None:
    status, said = await served.get(f"{METRIC}?labelSelector=pool%3Ddefault")
    assert status == 200
    assert said == {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "metricName": "waybill_workers_wanted",
                "metricLabels": {"pool": "default"},
                "timestamp": "2026-03-01T12:00:05Z",
                "value": "7",
            }
        ],
    }


async def test_an_idle_pool_is_a_row_with_0_and_not_an_empty_list(served: Served) -> None:
    _, said = await served.get(f"{METRIC}?labelSelector=pool%3Dheavy")
    assert [one["value"] for one in said["items"]] == ["0"]


async def test_a_selector_chooses_pools(served: Served) -> None:
    async def pools(selector: str) -> list[str]:
        _, said = await served.get(f"{METRIC}?labelSelector={selector}")
        return [one["metricLabels"]["pool"] for one in said["items"]]

    assert await pools("") == ["default", "heavy"]
    assert await pools("pool%20in%20(heavy,unknown)") == ["heavy"]
    assert await pools("pool!%3Dheavy") == ["default"]


async def test_an_unknown_pool_is_not_found_and_the_known_ones_are_named(served: Served) -> None:
    status, said = await served.get(f"{METRIC}?labelSelector=pool%3Dhaevy")
    assert (status, said["kind"], said["status"], said["reason"]) == (404, "Status", "Failure", "NotFound")
    assert "The pools of default are: default, heavy" in said["message"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{API}/namespaces/other/waybill_workers_wanted", 404),
        (f"{API}/namespaces/default/something_else", 404),
        (f"{METRIC}?labelSelector=pool%3D%3D%3D", 400),
        ("/apis/custom.metrics.k8s.io/v1beta1", 404),
        ("/openapi/v2", 404),
        ("/", 404),
    ],
)
async def test_whatever_is_not_there_is_a_status_object(served: Served, path: str, status: int) -> None:
    found, said = await served.get(path)
    assert found == status
    assert (said["kind"], said["code"]) == ("Status", status)
    assert said["message"]


async def test_writing_is_not_allowed(served: Served) -> None:
    status, said = await served.get(method="POST")
    assert (status, said["kind"]) == (405, "Status")


async def test_while_the_database_is_away_nothing_is_scaled(served: Served) -> None:
    served.figures.trouble = "Postgres does not answer."
    status, said = await served.get()
    assert (status, said["reason"]) == (503, "ServiceUnavailable")
    assert "Postgres does not answer." in said["message"]


async def test_a_pool_that_nobody_has_counted_is_an_error_and_not_0(served: Served) -> None:
    await served.cluster.put(WORKER_POOLS, {"metadata": {"name": "new"}, "spec": {}})

    async def known() -> bool:
        return (await served.get(f"{METRIC}?labelSelector=pool%3Dnew"))[0] != 404

    await eventually(known)
    status, said = await served.get(f"{METRIC}?labelSelector=pool%3Dnew")
    assert status == 503
    assert "have not been counted yet" in said["message"]


# Whom it believes


async def test_without_the_front_proxys_certificate_nobody_is_believed(served: Served) -> None:
    status, said = await served.get(context=served.client(None))
    assert (status, said["reason"]) == (401, "Unauthorized")


async def test_the_right_certificate_without_a_user_is_not_enough(served: Served) -> None:
    assert (await served.get(headers={}))[0] == 401


async def test_another_name_signed_by_the_same_authority_is_not_enough(served: Served) -> None:
    assert (await served.get(context=served.client("aggregator-of-mallory")))[0] == 401


async def test_a_certificate_by_somebody_else_does_not_get_in(served: Served) -> None:
    stranger = served.client("front-proxy-client", Authority("front proxies"))
    with pytest.raises(aiohttp.ClientError):
        await served.get(context=stranger)


async def test_an_expired_certificate_does_not_get_in(served: Served) -> None:
    certificate, key = served.proxies.issue(served.folder / "late", "front-proxy-client", days=-1)
    context = served.client(None)
    context.load_cert_chain(certificate, key)
    with pytest.raises(aiohttp.ClientError):
        await served.get(context=context)


async def test_a_servers_certificate_is_no_clients(served: Served) -> None:
    certificate, key = served.proxies.issue(served.folder / "wrong-use", "front-proxy-client", server=True)
    context = served.client(None)
    context.load_cert_chain(certificate, key)
    with pytest.raises(aiohttp.ClientError):
        await served.get(context=context)


async def test_with_no_allowed_names_the_authority_decides(served: Served) -> None:
    await served.trust(served.proxies)

    async def let_in() -> bool:
        return (await served.get(context=served.client("any-name")))[0] == 200

    await eventually(let_in)


async def test_a_new_authority_is_believed_and_the_old_one_is_not(served: Served) -> None:
    later = Authority("front proxies, next year")
    await served.trust(later, "front-proxy-client")

    async def new_one_is_let_in() -> bool:
        with contextlib.suppress(aiohttp.ClientError):
            return (await served.get(context=served.client("front-proxy-client", later)))[0] == 200
        return False

    await eventually(new_one_is_let_in)
    with pytest.raises(aiohttp.ClientError):
        await served.get()


async def test_nonsense_in_the_config_map_changes_nothing(served: Served) -> None:
    for data in ({}, {"requestheader-client-ca-file": "nonsense"}, {"requestheader-allowed-names": "{}"}):
        await served.cluster.put(
            CONFIG_MAPS, {"metadata": {"name": "extension-apiserver-authentication"}, "data": data}, "kube-system"
        )
    assert (await served.get())[0] == 200


# Certificates and clients


async def test_a_renewed_certificate_is_served_and_nobody_is_refused_meanwhile(served: Served) -> None:
    def serial() -> Any:
        context = served.client()
        with (
            socket.create_connection(("127.0.0.1", served.port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as wrapped,
        ):
            return (wrapped.getpeercert() or {})["serialNumber"]

    before = await asyncio.to_thread(serial)
    connector = aiohttp.TCPConnector(ssl=served.client(), limit=1)
    async with aiohttp.ClientSession(connector=connector, headers=USER) as session:
        address = f"https://127.0.0.1:{served.port}{METRIC}"
        async with session.get(address) as answer:
            assert answer.status == 200
        served.servers.issue(served.folder / "serving", "metrics", server=True)

        async def renewed() -> bool:
            assert (await served.get())[0] == 200
            return bool(await asyncio.to_thread(serial) != before)

        await eventually(renewed)
        async with session.get(address) as answer:
            assert answer.status == 200, "a connection that was open was cut"


async def test_nobody_who_connects_at_a_change_of_trust_is_forgotten(served: Served) -> None:
    """Many connect while one server takes over from another, again and again."""
    connector = aiohttp.TCPConnector(ssl=served.client(), force_close=True, limit=20)
    timeout = aiohttp.ClientTimeout(total=60, sock_connect=20)
    over = asyncio.Event()

    async def ask(session: aiohttp.ClientSession) -> None:
        while not over.is_set():
            async with session.get(f"https://127.0.0.1:{served.port}{METRIC}") as answer:
                assert answer.status == 200

    async with (
        aiohttp.ClientSession(connector=connector, headers=USER, timeout=timeout) as session,
        asyncio.TaskGroup() as asking,
    ):
        for _ in range(20):
            asking.create_task(ask(session))
        for change in range(100):
            await served.trust(served.proxies, "front-proxy-client", f"change-{change}")
            await asyncio.sleep(0)
        over.set()


async def test_half_a_certificate_is_not_used(served: Served) -> None:
    (served.folder / "serving/tls.key").write_text("half")
    for _ in range(5):
        await asyncio.sleep(0.05)
        assert (await served.get())[0] == 200


async def test_strangers_with_many_connections_do_not_keep_the_api_server_out(served: Served) -> None:
    context = served.client(None)
    context.check_hostname = False
    opened = []
    for _ in range(60):
        with contextlib.suppress(OSError):
            opened.append(await asyncio.open_connection("127.0.0.1", served.port, ssl=context))
    try:
        assert (await served.get())[0] == 200
    finally:
        for _, writer in opened:
            writer.transport.abort()


async def test_what_is_no_http_is_refused_and_what_is_silent_in_the_handshake_is_cut_off(served: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=served.client(None))
    writer.write(b"GET /apis HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 40_000 + b"\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 431")
    writer.transport.abort()
    silent, hush = await asyncio.open_connection("127.0.0.1", served.port)
    assert await silent.read() == b"", "still connected"
    hush.close()


async def test_requests_are_counted_by_route(served: Served) -> None:
    await served.get(API)
    await until(lambda: ("operator", "GET", API, "200") in dict(HTTP_REQUESTS.series()))
