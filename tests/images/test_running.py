"""The images run as a restricted pod runs them, and contain what their lists say. Only in `make test-images`."""

from __future__ import annotations

import json
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from image_contents import PACKAGES
from lock_subset import APART

from support.child_processes import free_port
from support.containers import SIGTERM_EXIT, USER, Container, Image, run, running, volume
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE

pytestmark = [pytest.mark.images, pytest.mark.timeout(1800)]

PYTHON = "/opt/waybill/bin/python"
IMAGES = sorted({path.stem for path in PACKAGES.glob("*.txt")} - APART)
LOOK = """
import json, os
from importlib.metadata import distributions
from pathlib import Path

def below(top):
    for folder, folders, names in os.walk(top):
        if folder == "/":
            folders[:] = sorted(set(folders) - {"proc", "dev", "tmp", "data"})
        yield from (Path(folder, name) for name in names)

def changeable(stat):
    return stat.st_uid == os.getuid() or stat.st_mode & 0o002

site = next(Path("/opt/waybill/lib").glob("python3*/site-packages"))
sources = [path for path in below(site) if path.suffix == ".py"]
print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "installed": sorted(each.metadata["Name"].lower().replace("_", "-") for each in distributions()),
    "not_compiled": [str(path) for path in sources if not list(path.parent.glob(f"__pycache__/{path.stem}.*.pyc"))],
    "ours_to_change": [str(path) for path in below("/") if not path.is_symlink() and changeable(path.stat())],
    "left_behind": [str(path) for path in below("/") if path.name in ("pip.conf", "ca.crt") or "pgserver" in str(path)],
}))
"""
WRITE = """
import errno, sys
for place in sys.argv[1:]:
    try:
        open(place + "/probe", "w").close()
        print(place, "is writable")
    except OSError as error:
        print(place, errno.errorcode[error.errno])
"""


@pytest.fixture(params=IMAGES)
def image(request: pytest.FixtureRequest, images: dict[str, Image]) -> Image:
    return images[request.param]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A volume that belongs to the images' user."""
    return volume(tmp_path / "data")


def listed(image: Image) -> list[str]:
    name = image.name.rpartition("waybill-")[2].partition(":")[0]
    return (PACKAGES / f"{name}.txt").read_text(encoding="utf-8").split()


def test_an_image_contains_what_its_list_says_compiled_and_nothing_that_the_build_needed(
    image: Image, tmp_path: Path
) -> None:
    code, output = run(image, tmp_path, command=[PYTHON, "-c", LOOK])
    assert code == 0, output
    found = json.loads(output)
    assert found["user"] == [10001, 10001]
    assert found["not_compiled"] == []
    assert found["ours_to_change"] == []
    assert found["left_behind"] == []
    # A name that only another Python needs is in the list and not here.
    assert set(found["installed"]) <= set(listed(image))
    assert {name for name in listed(image) if name.startswith("waybill-")} <= set(found["installed"])


def test_only_tmp_and_the_volume_can_be_written_to(image: Image, tmp_path: Path, data: Path) -> None:
    places = ["/", "/opt/waybill", "/etc", "/var", "/tmp", "/data"]
    _, output = run(image, tmp_path, command=[PYTHON, "-c", WRITE, *places], volumes={"/data": data})
    assert output.splitlines() == [
        "/ EROFS",
        "/opt/waybill EROFS",
        "/etc EROFS",
        "/var EROFS",
        "/tmp is writable",
        "/data is writable",
    ]


def test_images_share_all_layers_but_their_last_two(images: dict[str, Image]) -> None:
    common = {tuple(image.layers[:-2]) for image in images.values()}
    assert len(common) == 1
    assert len({image.layers[-1] for image in images.values()}) == len(images)


def test_the_history_holds_no_address_and_no_password(image: Image) -> None:
    described = json.dumps(image.config)
    assert "://" not in described
    assert not re.search(r"(?i)password|token", described)


@contextmanager
def silent_server() -> Iterator[socket.socket]:
    """A server that lets clients connect and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


@pytest.mark.parametrize(("name", "arguments"), [("janitor", []), ("cli", ["migrate"]), ("worker", []), ("api", [])])
def test_sigterm_ends_process_1_while_it_waits_for_its_database(
    images: dict[str, Image], tmp_path: Path, name: str, arguments: list[str]
) -> None:
    with silent_server() as server:
        url = f"postgresql://waybill@127.0.0.1:{server.getsockname()[1]}/waybill"
        environment = {"WAYBILL_DATABASE_URL": url, "WAYBILL_API_PORT": str(free_port())}
        with running(images[name], tmp_path, *arguments, environment=environment) as container:
            client, _ = server.accept()
            with client:
                assert container.stop(within=20) in {0, SIGTERM_EXIT}, container.log()


class Cluster:
    """The services over one database and one volume, each in its image."""

    def __init__(self, images: dict[str, Image], folder: Path, data: Path, database_url: str) -> None:
        self._images = images
        self._folder = folder
        self._data = data
        self._stack = ExitStack()
        api, gateway = free_port(), free_port()
        self.url = f"http://127.0.0.1:{api}"
        self._settings = {
            "WAYBILL_DATABASE_URL": database_url,
            "WAYBILL_GATEWAY_SECRET": secrets.token_hex(32),
            "WAYBILL_GATEWAY_URL": f"http://127.0.0.1:{gateway}",
            "WAYBILL_GATEWAY_PORT": str(gateway),
            "WAYBILL_API_PORT": str(api),
            "WAYBILL_API_METRICS_PORT": str(free_port()),
            "WAYBILL_GATEWAY_METRICS_PORT": str(free_port()),
            "WAYBILL_WORKER_METRICS_PORT": str(free_port()),
        }

    def start(self, name: str, *, user: int = USER) -> Container:
        """Start a service and wait until its image's health check passes."""
        image = self._images[name]
        volumes = {} if name == "gateway" else {"/data": self._data}
        how = running(image, self._folder, environment=self._settings, volumes=volumes, user=user)
        container = self._stack.enter_context(how)
        container.wait_until_healthy(image)
        return container

    def run(self, name: str, *arguments: str, **settings: str) -> tuple[int, str]:
        environment = {**self._settings, **settings}
        return run(self._images[name], self._folder, *arguments, environment=environment, volumes={"/data": self._data})

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def cluster(images: dict[str, Image], tmp_path: Path, data: Path, empty_database_url: str) -> Iterator[Cluster]:
    started = Cluster(images, tmp_path, data, empty_database_url)
    yield started
    started.close()


def test_a_document_goes_through_the_images_and_each_of_them_stops_cleanly(cluster: Cluster, data: Path) -> None:
    code, output = cluster.run("cli", "migrate")
    assert code == 0, output
    code, key = cluster.run("cli", "apikey", "create", "test")
    assert code == 0, key
    services = [cluster.start(name) for name in ("gateway", "api", "worker")]
    (data / "invoice.pdf").write_bytes(print_invoice(make_invoice(1, 3), REFERENCE))
    found = re.search(r"wb_\w+", key)
    assert found is not None, key
    results = ["-o", "/data/results", "--url", cluster.url]
    code, output = cluster.run("cli", "submit", "/data/invoice.pdf", *results, WAYBILL_API_KEY=found[0])
    assert code == 0, output
    (xml,) = (data / "results").iterdir()
    assert xml.read_bytes().startswith(b"<?xml")
    code, output = cluster.run("janitor", "--json")
    assert code == 0, output
    for service in services:
        assert service.stop() == 0, service.log()


def test_a_user_that_the_image_does_not_know_may_run_it(cluster: Cluster) -> None:
    """Some platforms choose the user themselves, one for each namespace."""
    assert cluster.start("gateway", user=1_000_650_000).stop() == 0


def test_the_command_says_what_it_can_do(images: dict[str, Image], tmp_path: Path) -> None:
    code, output = run(images["cli"], tmp_path)
    assert code == 0
    assert "migrate" in output
    assert "submit" in output
