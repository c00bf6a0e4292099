"""The page at /docs: what OpenAPI says, written out. It loads nothing and runs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
                                      "frame-ancestors 'none'; base-uri 'none'"}
STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font: 14px/1.4 ui-monospace, monospace }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8884 }
h2 { margin-top: 2.5rem; border-top: 1px solid #8886; padding-top: 1rem }
td { padding: .15rem 1rem .15rem 0; vertical-align: top }
"""
EXAMPLES = """curl -F image=@a.png -F image=@b.png ADDRESS/infer
curl -H 'Content-Type: application/json' -d '{"facts": [{"in(obj1,img)": 1.0}]}' ADDRESS/infer
curl -H "Authorization: Bearer $(cat token)" ADDRESS/program"""


def written(told: Mapping[str, Any]) -> str:
    """An OpenAPI document as a page."""
    parts = [f"<h1>{escape(told['info']['title'])} {escape(told['info']['version'])}</h1>",
             f"<p>{escape(told['info'].get('summary', ''))} The same for programs: "
             f'<a href="openapi.json">openapi.json</a>.</p>',
             f"<pre>{escape(EXAMPLES)}</pre>",
             '<form method="post" action="infer" enctype="multipart/form-data"><p>Without a token, pictures can be '
             'sent from here: <input type="file" name="image" accept="image/*" multiple required> '
             "<button>Ask</button></p></form>"]
    for path, methods in told["paths"].items():
        for method, one in methods.items():
            parts += _route(path, method, one)
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>nsfrc serve</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
            f"{''.join(parts)}</body></html>")


def _route(path: str, method: str, one: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2><p>{escape(one.get('summary', ''))}</p>"
    for kind, content in one.get("requestBody", {}).get("content", {}).items():
        yield f"<details><summary>Body: <code>{escape(kind)}</code></summary>{_json(content)}</details>"
    yield "<table>"
    for status, answer in one.get("responses", {}).items():
        yield f"<tr><td><code>{escape(str(status))}</code></td><td>{escape(answer.get('description', ''))}"
        for kind, content in answer.get("content", {}).items():
            yield f"<details><summary><code>{escape(kind)}</code></summary>{_json(content)}</details>"
        yield "</td></tr>"
    yield "</table>"


def _json(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"
