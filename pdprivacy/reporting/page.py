"""The page of a report: one file, without scripts, that fetches nothing."""

from __future__ import annotations

from pdprivacy._version import __version__
from pdprivacy.markup import Markup
from pdprivacy.reporting import curated, declared, ending, results, summary, together
from pdprivacy.reporting.pieces import Contents
from pdprivacy.reporting.prose import escape
from pdprivacy.reporting.style import style

__all__ = ["page"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
CONFIDENTIAL = "CONFIDENTIAL: curator's edition, not for publication"


def page(contents: Contents) -> str:
    """The whole page as HTML."""
    curator = contents.edition == "curator"
    parts = [
        ("released", "What was released", results.released(contents)),
        ("declared-so", "What was declared", declared.declared(contents)),
        ("cost", "What it cost", together.costs(contents)),
        ("exact", "How accurate it is", results.accuracies(contents)),
        ("gains", "What a homogeneity attack still gains", results.disclosure(contents)),
    ]
    if curator:
        parts.append(("ledger", "The budget, charge by charge (confidential)", curated.ledger(contents)))
        if contents.figures:
            parts.append(("figures", "Figures of the curator (confidential)", curated.figures(contents)))
    parts.append(("limits", "What this report does not say", ending.limits(contents)))
    parts.append(("made", "How this report was made", ending.made(contents)))
    body = "".join(
        f'<section id="{key}"><h2>{escape(title)}</h2>{text}</section>' for key, title, text in parts
    )
    links = "".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title, _ in parts)
    edition = "curator's edition" if curator else "public edition"
    mark = (
        Markup(f'<aside class="mark" aria-label="Warning">{escape(CONFIDENTIAL)}</aside>') if curator else ""
    )
    water = '<div class="water" aria-hidden="true">CONFIDENTIAL</div>' if curator else ""
    top = CONFIDENTIAL if curator else "Privacy report, public edition"
    if contents.seeded:
        top += " - NOT PRIVATE: made with a seed"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="generator" content="pdprivacy {escape(__version__)}">'
        '<meta name="robots" content="noindex">'
        f"<title>{'CONFIDENTIAL: ' if curator else ''}{escape(contents.title)}</title>"
        f"<style>{style(top, f'pdprivacy {__version__}')}</style></head><body>"
        f'{mark}{water}<div class="wrap"><header><h1>{escape(contents.title)}</h1>'
        f'<p class="soft">Privacy report, {escape(edition)}, {contents.time:%d %B %Y}</p></header>'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav><main>'
        f'<section id="short"><h2>In short</h2>{summary.summary(contents)}</section>{body}</main>'
        f'<footer><p class="small soft">{_foot(contents)}</p></footer></div></body></html>\n'
    )


def _foot(contents: Contents) -> Markup:
    if contents.edition == "curator":
        return escape(
            "Confidential: this edition holds exact counts or the records of a ledger. Do not pass it on."
        )
    return escape(
        "Made of released results, the declaration and the sums of the budget alone. Nothing was charged."
    )
