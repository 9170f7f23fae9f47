"""Sends each record to the URL that it names: hundreds at the same time, in order for each receiver.

Run it with `penstock run deliver:app`. `python receiver.py` is a small server to try it with.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from penstock import App, Record, Reject, Retry

app = App("webhooks")


@dataclass
class Hook:
    url: str
    body: dict[str, Any]


async def post(url: str, body: bytes, headers: dict[str, str]) -> int:
    """Send one request and return the status. Use the HTTP client that you like; this one needs no package."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
        lines = [f"POST {parts.path or '/'} HTTP/1.1", f"Host: {parts.netloc}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
        await writer.drain()
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()


@app.consume(
    "webhooks",
    dead_letter="webhooks.dlq",
    order="key",  # the key is the receiver, so that a receiver gets its records in order
    concurrency=200,
    timeout="10s",
    retry=Retry(attempts=6, first="200ms", limit="1m"),
)
async def deliver(hook: Hook, record: Record) -> None:
    # After a crash a record may be sent again. The receiver recognizes it by this id.
    headers = {"Idempotency-Key": f"{record.topic}-{record.partition}-{record.offset}"}
    status = await post(hook.url, json.dumps(hook.body).encode(), headers)
    if status >= 500:
        raise ConnectionError(f"{hook.url} answered {status}")  # it may be well again soon, so it is tried again
    if status >= 400:
        raise Reject(f"{hook.url} answered {status}")  # it will never accept this, so it is a dead letter at once
