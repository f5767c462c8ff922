"""A backend that speaks HTTP/2 within TLS, and treats one request of four as told:

good       it is answered as all others are
refusing   it is refused (REFUSED_STREAM): nothing was done with it; which ones is drawn, for of
           many at once every fourth might be the same one again and again
malformed  its answer has a field that belongs to a connection, which no head may have; every fourth

Usage: h2_backend.py good|refusing|malformed --listen ADDR --cert FILE --key FILE
"""

import argparse
import asyncio
import itertools
import random
import ssl
import sys

sys.dont_write_bytecode = True  # experiments leave nothing in their own folder
import h2_frames as h2  # noqa: E402

EVERY = 4
STATUS_200 = b"\x88"


def meant(mode, number, draws):
    if mode == "refusing":
        return draws.randrange(EVERY) == 0
    return mode == "malformed" and number % EVERY == 0


def answer(mode, stream, is_meant):
    if not is_meant:
        head = h2.frame(h2.HEADERS, h2.END_HEADERS, stream, STATUS_200)
        return head + h2.frame(h2.DATA, h2.END_STREAM, stream, b"ok")
    if mode == "refusing":
        return h2.reset(stream, h2.REFUSED_STREAM)
    block = STATUS_200 + h2.field(b"connection", b"close")
    return h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, block)


def serving(mode):
    numbers = itertools.count(1)
    draws = random.Random(19)

    async def serve(reader, writer):
        try:
            if await reader.readexactly(len(h2.PREFACE)) != h2.PREFACE:
                return
            writer.write(h2.frame(h2.SETTINGS, 0, 0))
            while True:
                kind, flags, stream, payload = await h2.read(reader)
                if kind == h2.SETTINGS and not flags & h2.ACK:
                    writer.write(h2.frame(h2.SETTINGS, h2.ACK, 0))
                elif kind == h2.PING and not flags & h2.ACK:
                    writer.write(h2.frame(h2.PING, h2.ACK, 0, payload))
                elif kind == h2.GOAWAY:
                    return
                elif kind in (h2.HEADERS, h2.DATA) and flags & h2.END_STREAM:
                    writer.write(answer(mode, stream, meant(mode, next(numbers), draws)))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    return serve


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("good", "refusing", "malformed"))
    for flag in ("--listen", "--cert", "--key"):
        parser.add_argument(flag, required=True)
    options = parser.parse_args()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.cert, options.key)
    context.set_alpn_protocols(["h2"])
    host, _, port = options.listen.rpartition(":")
    server = await asyncio.start_server(serving(options.mode), host, int(port), ssl=context, backlog=1000)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
