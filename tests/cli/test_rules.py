"""`waybill rules`: packages are checked, tested and explained, and what is wrong is said with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import Waybill

PACKAGE = """
field battery.capacity: Qty(kWh) =
  let battery = requireSome(getFact("Battery", "battery:1"), "E001", "The battery is missing.");
  requireSome(recordGet(battery, "capacity", Qty(kWh)), "E002", "The battery has no capacity.");
field battery.needs_passport: Bool = field("battery.capacity") > toQty("kWh", 2);

example "a battery above 2 kWh needs a passport" {
  fact "Battery" "battery:1" = {"capacity": 52.5};
  expect field("battery.needs_passport");
}
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    file = tmp_path / "battery.rules"
    file.write_text(PACKAGE)
    return file


async def test_a_package_is_checked(waybill: Waybill, package: Path) -> None:
    shown = await waybill("rules", "check", str(package))
    assert [line.split() for line in shown.lines[1:3]] == [
        ["battery.capacity", "Qty(kWh)", "2"],
        ["battery.needs_passport", "Bool", "5"],
    ]
    assert shown.lines[-1] == "2 fields, 1 test. All well."
    told = (await waybill("rules", "check", str(package), "--json")).json
    assert [each["path"] for each in told["fields"]] == ["battery.capacity", "battery.needs_passport"]
    assert len(told["rules_hash"]) == len(told["tests_hash"]) == 64


async def test_a_mistake_is_shown_with_its_place_and_what_was_meant(waybill: Waybill, package: Path) -> None:
    package.write_text(PACKAGE.replace("requireSome(getFact", "requireSom(getFact"))
    refused = await waybill("rules", "check", str(package))
    assert refused.code == 2
    assert "line 3, column 17" in refused.err
    assert "Did you mean 'requireSome'?" in refused.err
    assert "^^^^^^^^^^" in refused.err


async def test_a_packages_tests_are_run(waybill: Waybill, package: Path) -> None:
    ran = await waybill("rules", "test", str(package))
    assert (ran.code, ran.out) == (0, "1 passed, 0 failed.\n")
    package.write_text(PACKAGE.replace("52.5", "1.5"))
    failed = await waybill("rules", "test", str(package))
    assert failed.code == 1
    assert 'line 9: "a battery above 2 kWh needs a passport"' in failed.out
    told = await waybill("rules", "test", str(package), "--json")
    assert (told.code, [each["line"] for each in told.json["failed"]]) == (1, [9])


async def test_a_value_is_explained_by_its_facts(waybill: Waybill, package: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps([{"type": "Battery", "key": "battery:1", "payload": {"capacity": 3.25}}]))
    shown = await waybill("rules", "explain", str(package), "battery.needs_passport", "--facts", str(facts))
    assert shown.code == 0
    assert "  value: true" in shown.lines
    assert any("3.250000" in line for line in shown.lines)
    without = await waybill("rules", "explain", str(package), "battery.needs_passport")
    assert (without.code, "The battery is missing." in without.out) == (1, True)
    unknown = await waybill("rules", "explain", str(package), "battery.need_passport")
    assert (unknown.code, "battery.needs_passport" in unknown.err) == (2, True)


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '[{"type": "Battery"}]'])
async def test_what_are_no_facts_is_refused(waybill: Waybill, package: Path, tmp_path: Path, text: str) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(text)
    refused = await waybill("rules", "explain", str(package), "battery.capacity", "--facts", str(facts))
    assert refused.code == (1 if text == "{}" else 2)
