"""A route service of Cloud Foundry, well or not by the path at which it is asked:

/good    sends the request on to where X-CF-Forwarded-Url says, and its answer back
/slow    the same, after --slow seconds
/late    the same, after --late seconds, by when the signature should have expired
/forged  the same, with a signature in which a character is another one

Usage: route_service.py --listen ADDR --router ADDR --cert FILE --key FILE [--slow S] [--late S]
"""

import argparse
import asyncio
import ssl

SIGNATURE = "x-cf-proxy-signature"
OF_A_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "host", "content-length")


async def message(reader):
    """First line, fields and body of a request or an answer; None at the end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines if line)]
    known = {name.lower(): value for name, value in fields}
    body = await reader.readexactly(int(known.get("content-length", 0)))
    return first, fields, known, body


def written(first, fields, body):
    lines = [first] + [f"{name}: {value}" for name, value in fields]
    return "\r\n".join(lines + [f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body


def forged(signature):
    middle = len(signature) // 2
    other = "A" if signature[middle] != "A" else "B"
    return signature[:middle] + other + signature[middle + 1 :]


async def sent_on(options, mode, first, fields, known, body):
    """What the router answers to the request when it comes for the second time."""
    method = first.split(" ")[0]
    host, slash, path = known["x-cf-forwarded-url"].partition("://")[2].partition("/")
    kept = [(name, value) for name, value in fields if name.lower() not in OF_A_CONNECTION]
    if mode == "forged":
        kept = [(name, forged(value) if name.lower() == SIGNATURE else value) for name, value in kept]
    to, _, port = options.router.rpartition(":")
    reader, writer = await asyncio.open_connection(to, int(port))
    try:
        fields = [("Host", host), ("Connection", "close")] + kept
        writer.write(written(f"{method} {slash}{path} HTTP/1.1", fields, body))
        return await message(reader)
    finally:
        writer.close()


def serving(options):
    async def serve(reader, writer):
        try:
            while (request := await message(reader)) is not None:
                mode = request[0].split(" ")[1].strip("/")
                await asyncio.sleep({"slow": options.slow, "late": options.late}.get(mode, 0))
                answer = await sent_on(options, mode, *request)
                if answer is None:
                    return
                first, fields, _, body = answer
                kept = [(name, value) for name, value in fields if name.lower() not in OF_A_CONNECTION]
                writer.write(written(first, kept, body))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, KeyError):
            pass
        finally:
            writer.close()

    return serve


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--listen", "--router", "--cert", "--key"):
        parser.add_argument(flag, required=True)
    for flag in ("--slow", "--late"):
        parser.add_argument(flag, type=float, default=0.0)
    options = parser.parse_args()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.cert, options.key)
    host, _, port = options.listen.rpartition(":")
    server = await asyncio.start_server(serving(options), host, int(port), ssl=context, backlog=1000)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
