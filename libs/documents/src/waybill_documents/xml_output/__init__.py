"""Writes data as XML by a mapping (`tree`), validates it (`validation`), and reads data that comes as JSON."""

from __future__ import annotations

from waybill_documents.xml_output.json_data import extracted_from_json, read_json
from waybill_documents.xml_output.tree import check_tree, render
from waybill_documents.xml_output.validation import XmlSchema, load_schema

__all__ = [
    "XmlSchema",
    "check_tree",
    "extracted_from_json",
    "load_schema",
    "read_json",
    "render",
]
