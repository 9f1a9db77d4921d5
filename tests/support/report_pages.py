"""Pages of reports as tests read them, and releases that are made by hand for them."""

from __future__ import annotations

import re
from fractions import Fraction
from html.parser import HTMLParser

import pandas as pd

import pdprivacy
from pdprivacy.releases import metadata


class Page(HTMLParser):
    """A page read as a browser reads it: elements with their attributes, and the text outside of styles."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.texts: list[str] = []
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self._caption = ""
        self.feed(html)
        self.close()
        self.text = re.sub(r"\s+", " ", " ".join(self.texts))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "table":
            self._rows, self._caption = [], ""
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("th", "td"):
            self._rows[-1].append("")

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass
        if tag == "table":
            self.tables[self._caption] = self._rows

    def handle_data(self, data):
        if self._open[-1:] == ["style"]:
            return
        self.texts.append(data)
        if "caption" in self._open:
            self._caption += data
        elif "th" in self._open or "td" in self._open:
            self._rows[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of this kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def page(releases, **options) -> Page:
    return Page(pdprivacy.report(releases, pictures=False, **options).html)


def fabricated(epsilon=0.5, delta=0.0, number=1.0, **facts) -> pd.Series:
    """A release as another run of the program might have made it."""
    stored = {
        "statistic": "mean", "columns": ["age"], "mechanism": "laplace", "epsilon": float(epsilon),
        "delta": float(delta), "neighbors": "add_remove", "sensitivity": 1.0, "scale": 2.0,
        "split": {"count": 1.0}, "error": {"level": 0.95, "standard_error": 0.5, "plus_minus": 1.0},
        "budget": {"total": [100.0, 0.5], "spent": [float(epsilon), float(delta)]}, "seeded": False,
        "version": pdprivacy.__version__, **facts,
    }  # fmt: skip
    released = pd.Series([number], index=["age"])
    metadata.attach(released, stored)
    return released


def total_of(report: Page) -> tuple[Fraction, Fraction]:
    """The last row of the one total."""
    row = report.tables["Total cost"][-1]
    return Fraction(row[1]), Fraction(row[2])
