"""The dashboard is what its description says, and is complete enough for a person at night."""

from __future__ import annotations

import itertools

from observability.expressions import DASHBOARD, alerts, dashboard, panels, selectors
from waybill_cli.monitoring.dashboard import dashboard_text


def test_the_file_is_what_the_description_says() -> None:
    assert DASHBOARD.read_text(encoding="utf-8") == dashboard_text()


def test_it_has_a_section_for_each_part_and_begins_with_whether_all_is_well() -> None:
    sections = [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"]
    assert sections == ["Is it well?", "Queue", "Conversions", "Gateway", "Fleet", "Janitor"]


def test_data_source_installation_and_kind_can_be_chosen() -> None:
    assert [variable["name"] for variable in dashboard()["templating"]["list"]] == ["datasource", "namespace", "kind"]


def test_results_that_wait_for_a_person_can_be_seen() -> None:
    shown = [target["expr"] for panel in panels() for target in panel["targets"]]
    assert any("waybill_reviews_total" in expression for expression in shown)


def test_every_panel_explains_itself_and_has_a_unit() -> None:
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["targets"], panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        if panel["type"] != "stat":
            assert all(target["legendFormat"] != "__auto" for target in panel["targets"]), panel["title"]


def test_no_panel_lies_on_another_or_leaves_the_page() -> None:
    places = [panel["gridPos"] for panel in dashboard()["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in itertools.combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)


def test_what_an_alert_is_about_can_be_seen() -> None:
    """A person who was woken up finds the figure, with its history."""
    shown = {
        selector.partition("{")[0]
        for panel in panels()
        for target in panel["targets"]
        for selector in selectors(target["expr"])
    }
    alarming = {selector.partition("{")[0] for alert in alerts() for selector in selectors(alert["expr"])}
    recorded = {name for name in alarming if name.startswith("waybill:")}  # made of waybill_job_end_to_end_seconds
    assert alarming - recorded <= shown | {"up"}
    assert "waybill_job_end_to_end_seconds_bucket" in shown
