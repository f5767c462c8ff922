"""Sends requests over HTTP/2 of which every second has a malformed head, on the same connections
as the good ones, and says what became of them.

Usage: h2_client.py --to ADDR --host NAME --pairs N
"""

import argparse
import asyncio
import ssl
import sys
from collections import Counter

sys.dont_write_bytecode = True  # experiments leave nothing in their own folder
import h2_frames as h2  # noqa: E402

# Pairs of a connection: who sends many malformed heads may be cut off.
PAIRS = 5
PATIENCE_S = 30


def head(stream, host, malformed):
    fields = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", host), (b":path", b"/")]
    # Fields of a connection have no place in HTTP/2 (RFC 9113 section 8.2.2).
    fields += [(b"connection", b"keep-alive")] if malformed else []
    block = b"".join(h2.field(name, value) for name, value in fields)
    return h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, block)


async def connection(options, context, pairs, seen):
    to, _, port = options.to.rpartition(":")
    reader, writer = await asyncio.open_connection(to, int(port), ssl=context)
    try:
        writer.write(h2.PREFACE + h2.frame(h2.SETTINGS, 0, 0))
        malformed, good = set(), set()
        for pair in range(pairs):
            first, second = 4 * pair + 1, 4 * pair + 3
            writer.write(head(first, options.host.encode(), True) + head(second, options.host.encode(), False))
            malformed.add(first)
            good.add(second)
        seen.update(malformed=len(malformed), good=len(good))
        while malformed or good:
            kind, flags, stream, payload = await h2.read(reader)
            if kind == h2.SETTINGS and not flags & h2.ACK:
                writer.write(h2.frame(h2.SETTINGS, h2.ACK, 0))
            elif kind == h2.PING and not flags & h2.ACK:
                writer.write(h2.frame(h2.PING, h2.ACK, 0, payload))
            elif kind == h2.RST_STREAM and stream in malformed:
                malformed.discard(stream)
                code = int.from_bytes(payload, "big")
                seen["reset" if code == h2.PROTOCOL_ERROR else f"reset with {code}"] += 1
            elif kind == h2.RST_STREAM:
                good.discard(stream)
                seen["good ones reset"] += 1
            elif kind in (h2.HEADERS, h2.DATA) and flags & h2.END_STREAM and stream in good:
                good.discard(stream)
                seen["answered"] += 1
            elif kind == h2.GOAWAY:
                seen["cut off"] += len(malformed) + len(good)
                return
    finally:
        writer.close()


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--to", "--host"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--pairs", type=int, required=True)
    options = parser.parse_args()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    seen, left = Counter(), options.pairs
    while left:
        pairs = min(left, PAIRS)
        await asyncio.wait_for(connection(options, context, pairs, seen), PATIENCE_S)
        left -= pairs
    print(", ".join(f"{what}: {seen[what]}" for what in ("malformed", "reset", "good", "answered")))
    rest = {what: count for what, count in seen.items() if what not in ("malformed", "reset", "good", "answered")}
    print("besides:", rest or "nothing")


if __name__ == "__main__":
    asyncio.run(main())
