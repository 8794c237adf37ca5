"""How to run Prometheus here: it scrapes the services and evaluates the alert rules that come with Waybill."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from waybill.files.private import write_private
from waybill_cli.monitoring.rules import rules_text


def prometheus_command(program: str, folder: Path, *, port: int, targets: Mapping[str, str]) -> list[str]:
    """Write its configuration into the folder, and return the command. `targets` are `host:port` by service."""
    rules, configuration = folder / "alerts.yaml", folder / "prometheus.yml"
    write_private(rules, rules_text())
    write_private(configuration, _configuration(rules, targets))
    return [
        program,
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        "--storage.tsdb.retention.time=15d",
        "--storage.tsdb.retention.size=1GB",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
        "--log.level=warn",
    ]


def _configuration(rules: Path, targets: Mapping[str, str]) -> str:
    scraped = [
        {"job_name": f"waybill-{service}", "static_configs": [{"targets": [target]}]}
        for service, target in sorted(targets.items())
    ]
    settings = {
        "global": {"scrape_interval": "5s", "evaluation_interval": "15s"},
        "rule_files": [str(rules)],
        "scrape_configs": scraped,
    }
    return json.dumps(settings, indent=2) + "\n"  # JSON is YAML, too
