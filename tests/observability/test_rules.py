"""The alert rules fire when they should, stay silent when they should, and each has its section in the runbook."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import typer
import yaml  # type: ignore[import-untyped]

from observability.expressions import ROOT, RULES, RULES_TEST, alerts
from support.command_line import Waybill
from support.prometheus import PROMTOOL, needs
from waybill_cli.main import app
from waybill_cli.monitoring.rules import rules_text

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")


def promtool(*arguments: object) -> None:
    command = [needs(PROMTOOL), *(str(each) for each in arguments)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)


def test_every_alert_fires_and_stays_silent_as_its_unit_tests_say() -> None:
    promtool("test", "rules", RULES_TEST)


def test_the_unit_tests_show_every_rule_firing_and_not_firing() -> None:
    """With each severity, because an alert may have two rules."""
    fires, silent = set(), set()
    for test in yaml.safe_load(RULES_TEST.read_text(encoding="utf-8"))["tests"]:
        for case in test.get("alert_rule_test", []):
            severities = {each["exp_labels"]["severity"] for each in case["exp_alerts"]}
            fires |= {(case["alertname"], severity) for severity in severities}
            silent |= {(case["alertname"], severity) for severity in {"page", "ticket"} - severities}
    there = {(alert["alert"], alert["labels"]["severity"]) for alert in alerts()}
    assert there == fires
    assert there <= silent


def test_every_alert_says_who_is_needed_what_happened_and_what_to_do() -> None:
    for alert in alerts():
        name = alert["alert"]
        assert alert["labels"]["severity"] in ("page", "ticket"), name
        assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}, name
        assert alert["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"


def test_alerts_and_sections_of_the_runbook_are_the_same() -> None:
    sections = re.findall(r"^## (\w+)$", RUNBOOK, re.MULTILINE)
    assert sorted(sections) == sorted({alert["alert"] for alert in alerts()})


@pytest.mark.parametrize(
    "section", re.split(r"^## ", RUNBOOK, flags=re.MULTILINE)[1:], ids=lambda text: text.split()[0]
)
def test_a_section_names_its_severities_and_says_what_to_do_and_what_not(section: str) -> None:
    name = section.split()[0]
    severities = {alert["labels"]["severity"] for alert in alerts() if alert["alert"] == name}
    assert set(re.findall(r"\*\*(page|ticket)\b", section)) == severities
    for part in ("*How to see it.*", "*What to do", "*What not to do.*"):
        assert part in section


def commands_in(text: str) -> set[str]:
    """Every `waybill …` in a page's code, without what stands for a value."""
    quoted = re.findall(r"`(waybill [^`]+)`", text)
    return {re.sub(r"\s+", " ", command) for command in quoted}


@pytest.mark.parametrize(
    "command",
    sorted(
        set()
        .union(
            *(
                commands_in((ROOT / "docs" / page).read_text(encoding="utf-8"))
                for page in ("runbook.md", "monitoring.md")
            )
        )
        .union(
            found.strip()
            for alert in alerts()
            for found in re.findall(
                r"waybill [a-z]+(?: [a-z]+| --[a-z-]+| KIND| ID)*", alert["annotations"]["description"]
            )
        )
    ),
)
def test_every_command_that_a_person_is_told_to_type_exists(command: str) -> None:
    words = command.split()[1:]
    group = typer.main.get_command(app)
    context = group.make_context("waybill", ["version"])
    found = group
    while isinstance(found, typer.core.TyperGroup) and words:
        following = found.get_command(context, words[0])
        assert following is not None, f"{words[0]} in {command}"
        found = following
        words.pop(0)
    options = {option for parameter in found.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options


def test_the_copy_for_deployments_is_current() -> None:
    assert RULES.read_text(encoding="utf-8") == rules_text()


def test_an_installed_waybill_has_the_rules(tmp_path: Path) -> None:
    """`waybill up --observe` needs them where there is no repository."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / "cli", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert packed.read("waybill_cli/monitoring/alerts.yaml") == RULES.read_bytes()


async def test_links_lead_to_where_an_organisation_keeps_its_documents(bare: Waybill) -> None:
    ran = await bare("monitoring", "rules", "--docs", "https://wiki.example.com/waybill/")
    links = {
        rule["annotations"]["runbook_url"]
        for group in yaml.safe_load(ran.out)["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    assert {link.partition("#")[0] for link in links} == {"https://wiki.example.com/waybill/runbook.md"}
