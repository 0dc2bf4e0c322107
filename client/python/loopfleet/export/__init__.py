"""Exports data sets as files: Parquet, JSON lines or CSV, in a folder with one file per part, a
card, checksums and the provenance. `python -m loopfleet.export --help`."""

from .data_card import card
from .dataset import FORMATS, check, export
from .part_file import arrow_schema
from .summary import Summary

__all__ = ["FORMATS", "Summary", "arrow_schema", "card", "check", "export"]
