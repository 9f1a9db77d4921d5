"""The look of a report: light and dark, on a narrow screen, and on A4 paper."""

from __future__ import annotations

__all__ = ["STYLE", "style"]

STYLE = """
:root{color-scheme:light dark;--page:#fff;--text:#1b1f24;--soft:#4b5563;--line:#c3c9d1;
--head:#eef1f5;--link:#0b57a4;--card:#fff;--warn:#fff3c4;--warntext:#4a3500;--warnline:#b98900;--alarm:#a80f1a;--alarmtext:#fff}
@media (prefers-color-scheme:dark){:root{
--page:#14171b;--text:#e8eaed;--soft:#b3bac4;--line:#434a54;
--head:#20252b;--link:#8ab8ff;--warn:#3d3000;--warntext:#ffe49a;--warnline:#b98900;--alarm:#a80f1a;--alarmtext:#fff}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--text);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;overflow-wrap:anywhere}
.wrap{max-width:52rem;margin:0 auto;padding:1rem 1.25rem 3rem}
h1{font-size:1.75rem;line-height:1.2;margin:1rem 0 .25rem}
h2{font-size:1.35rem;line-height:1.25;margin:2.5rem 0 .5rem;padding-top:.75rem;
border-top:2px solid var(--line)}
h3{font-size:1.1rem;line-height:1.3;margin:1.75rem 0 .4rem}
p{margin:.5rem 0}
a{color:var(--link)}
ul{margin:.5rem 0;padding-left:1.3rem}
li{margin:.3rem 0}
.soft{color:var(--soft)}
.small{font-size:.875rem}
.facts{display:grid;grid-template-columns:fit-content(45%) 1fr;gap:.15rem 1rem;margin:.6rem 0}
.facts dt{color:var(--soft)}
.facts dd{margin:0}
.scroll{overflow-x:auto;margin:.75rem 0}
.scroll:focus-visible{outline:2px solid var(--link);outline-offset:2px}
table{border-collapse:collapse;font-size:.9375rem;font-variant-numeric:tabular-nums;min-width:min(100%,20rem)}
caption{text-align:left;font-weight:600;padding:.25rem 0}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;
min-width:4ch;
overflow-wrap:break-word}
thead th{background:var(--head);border-bottom:2px solid var(--line)}
tbody th{font-weight:400}
.n{text-align:right;overflow-wrap:normal;white-space:nowrap}
.long{overflow-wrap:anywhere;min-width:8.5ch}
.sum th,.sum td{font-weight:700;border-top:2px solid var(--line)}
figure{margin:1rem 0;padding:.5rem;background:#fff;border:1px solid var(--line);border-radius:.4rem}
figure img{display:block;max-width:100%;height:auto;margin:0 auto}
.box{border-left:.35rem solid var(--warnline);background:var(--warn);color:var(--warntext);
padding:.6rem .9rem;margin:1rem 0;border-radius:.2rem}
.box p{margin:.2rem 0}
.mark{position:sticky;top:0;z-index:2;background:var(--alarm);color:var(--alarmtext);padding:.4rem 1.25rem;
text-align:center;font-weight:700}
.water{display:none}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem}
nav li{margin:0}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.75rem}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.875em}
@media (max-width:34rem){
.wrap{padding:.5rem .85rem 2rem}
h1{font-size:1.45rem}h2{font-size:1.2rem;margin-top:2rem}
th,td{padding:.3rem .45rem}
}
@media print{
:root{color-scheme:light;--page:#fff;--text:#000;--soft:#333;--line:#999;--head:#eee;--link:#000;--warn:#fff;
--warntext:#000;--warnline:#000;--alarm:#fff;--alarmtext:#000}
html{font-size:9.5pt}body{line-height:1.35}
.wrap{max-width:none;padding:0}
h1{font-size:18pt}h2{font-size:13pt;margin-top:16pt}h3{font-size:11pt;margin-top:11pt}
h1,h2,h3,h4,caption,.facts{break-after:avoid}
p,li{orphans:3;widows:3}
nav{display:none}
.scroll{overflow:visible}
table{width:100%;font-size:8.5pt}
thead{display:table-header-group}
tr,figure,.box,.facts,.short{break-inside:avoid}
tbody tr:first-child{break-before:avoid}
th,td{padding:2pt 4pt}
figure{border:0;padding:0;text-align:center}
figure img{max-height:125mm}
footer{display:none}
.mark{position:static;border:2px solid #000}
.water{display:block;position:fixed;inset:40% 0 auto;text-align:center;font-size:56pt;font-weight:700;
color:#000;opacity:.07;transform:rotate(-28deg);z-index:-1}
}
"""

PAGE = """
@page{{size:A4;margin:18mm 16mm 18mm;@top-center{{content:"{top}";font:bold 9pt sans-serif}}
@bottom-left{{content:"{left}";font:8pt sans-serif}}
@bottom-right{{content:"page " counter(page) " of " counter(pages);font:8pt sans-serif}}}}
"""


def style(top: str, left: str) -> str:
    """The style sheet; ``top``, ``left``: what stands on every printed page, plain ASCII, no quotes."""
    return STYLE + PAGE.format(top=top, left=left)
