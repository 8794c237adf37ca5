"""`waybill mapping push`, `pull`, `test`, `publish` and `retire`: a tenant's own mappings, by the API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from waybill.console.api_client import ApiAway, ApiClient, ApiFailed
from waybill.console.api_connection import DEFAULT_URL, Key, Url, connected
from waybill.console.exits import ExitCode
from waybill.console.options import AsJson
from waybill.console.terminal import complain, print_json, print_line, remark, styled
from waybill.files import write_atomic
from waybill_convert.commands.mapping.selection import choose
from waybill_convert.upload_contents import suffix_of
from waybill_documents.catalogue import FILE
from waybill_documents.mapping_files import MappingFiles, gather

SAMPLES = "samples"
_MOST_DIFFERENCES = 10

Mapping = Annotated[str, typer.Argument(metavar="MAPPING", help="A file, or its folder.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The mapping's name.")]
ForAll = Annotated[bool, typer.Option("--shared", help="Share it with all tenants; needs an admin's key.")]


def push(
    mapping: Mapping, shared: ForAll = False, url: Url = DEFAULT_URL, key: Key = "", as_json: AsJson = False
) -> None:
    """Push a mapping as a draft, with its schemas and with the samples beside it.

    Samples are the documents in the folder `samples`: PDFs, e-invoices as XML, workbooks and CSV files. What must be
    read from `samples/one.pdf` is in `samples/one.json`.
    """
    chosen = choose(mapping)
    try:
        files = gather(chosen.folder, chosen.file)
        name = str(json.loads(files.document)["name"])
        samples = _samples(chosen.folder) if isinstance(chosen.folder, Path) else []
    except (OSError, ValueError, KeyError, TypeError) as error:
        complain(f"{chosen.shown} cannot be read: {error}")
        raise typer.Exit(ExitCode.USAGE) from error
    if doubled := _doubled(samples):
        one, other = (document.name for document in doubled)
        complain(f"The samples {one} and {other} need two different names, without their endings.")
        raise typer.Exit(ExitCode.USAGE)
    with connected("mapping push", url, key) as api:
        body = {"document": files.document, "schemas": dict(files.schemas)}
        made = api.call("PUT", f"/api/mappings/{name}", params=_for(shared), json=body)
        for document, expected in samples:
            _push_sample(api, name, shared, document, expected)
        if as_json:
            print_json(made)
            return
        print_line(styled(f"{name} is a draft{_with(len(samples))}. Publish it with: waybill mapping publish {name}"))


def pull(
    name: Name,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where its folder is made.")] = Path(),
    shared: ForAll = False,
    url: Url = DEFAULT_URL,
    key: Key = "",
) -> None:
    """Write a mapping of your tenant, or a shared one, into a folder with its name."""
    with connected("mapping pull", url, key) as api:
        found = api.call("GET", f"/api/mappings/{name}", params=_for(shared))
    files = MappingFiles(found["document"], found["schemas"])
    folder = output / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in {FILE: files.document, **files.schemas}.items():
            write_atomic(folder / Path(file).name, text.encode())
    except OSError as error:
        complain(f"{folder} cannot be written: {error.strerror or error}.")
        raise typer.Exit(ExitCode.USAGE) from error
    print_line(styled(f"{folder / FILE}: {name}, {found['state']}"))


def try_samples(
    name: Name, shared: ForAll = False, url: Url = DEFAULT_URL, key: Key = "", as_json: AsJson = False
) -> None:
    """Convert all samples of a mapping, and show what differs. Exits with 1 if one fails."""
    with connected("mapping test", url, key) as api:
        found = api.call("POST", f"/api/mappings/{name}/test", params=_for(shared))
    if as_json:
        print_json(found)
    else:
        _print_results(found["samples"])
    if not found["passed"]:
        raise typer.Exit(ExitCode.REFUSED)


def publish(name: Name, shared: ForAll = False, url: Url = DEFAULT_URL, key: Key = "") -> None:
    """Publish a draft whose samples all pass. It never changes again."""
    with connected("mapping publish", url, key) as api:
        try:
            made = api.call("POST", f"/api/mappings/{name}/publish", params=_for(shared))
        except ApiFailed as failed:
            _print_results(failed.problem.get("samples", []))
            raise
    if not made["tested"]:
        remark("It has no samples, so nothing was tried.")
    print_line(styled(f"{name} is published. Use it with: waybill submit --mapping {name} FILE.pdf"))


def retire(name: Name, shared: ForAll = False, url: Url = DEFAULT_URL, key: Key = "") -> None:
    """Hide a mapping from new uploads. Documents that were uploaded with it go on with it."""
    with connected("mapping retire", url, key) as api:
        api.call("POST", f"/api/mappings/{name}/retire", params=_for(shared))
    print_line(styled(f"{name} is retired."))


def _samples(folder: Path) -> list[tuple[Path, str | None]]:
    """Each sample's document, and the text of what must be read from it."""
    found = []
    for document in sorted((folder / SAMPLES).glob("*")):
        # Excel locks an open workbook with a file that is called like it.
        if not suffix_of(document.name) or document.name.startswith((".", "~$")) or not document.is_file():
            continue
        expected = document.with_suffix(".json")
        found.append((document, expected.read_text("utf-8") if expected.is_file() else None))
    return found


def _doubled(samples: list[tuple[Path, str | None]]) -> tuple[Path, Path] | None:
    """Two documents that would be the same sample: each would take the place of the other."""
    known: dict[str, Path] = {}
    for document, _ in samples:
        if (other := known.setdefault(document.stem, document)) is not document:
            return other, document
    return None


def _push_sample(api: ApiClient, name: str, shared: bool, document: Path, expected: str | None) -> None:
    fields = {"name": document.stem, **({"expected": expected} if expected is not None else {})}
    files = {"file": (f"sample{suffix_of(document.name)}", document.read_bytes(), "application/octet-stream")}
    try:
        api.call("POST", f"/api/mappings/{name}/samples", params=_for(shared), data=fields, files=files)
    except ApiAway:
        raise
    except ApiFailed as failed:
        raise ApiFailed(f"{document.name}: {failed.message}", failed.problem) from failed


def _print_results(results: list[dict[str, Any]]) -> None:
    for each in results:
        print_line(styled(f"{'✓' if each['passed'] else '✗'} {each['sample']}"))
        for finding in each["findings"][:_MOST_DIFFERENCES]:
            print_line(styled(f"    {finding.get('message')}"))
        for difference in each["differences"][:_MOST_DIFFERENCES]:
            wanted, read = (_shown(difference[which]) for which in ("expected", "found"))
            print_line(styled(f"    {difference['path']}: {read} instead of {wanted}"))


def _shown(value: str | None) -> str:
    return "nothing" if value is None else f"'{value}'"


def _with(samples: int) -> str:
    return {0: "", 1: " with one sample"}.get(samples, f" with {samples} samples")


def _for(shared: bool) -> dict[str, str]:
    return {"shared": "true"} if shared else {}
