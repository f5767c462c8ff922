"""Answers WebSocket messages with themselves (RFC 6455), and nothing else; the backend of
experiments/router-websocket-faults.toml.

Usage: echo.py --listen ADDR
"""

import argparse
import asyncio
import base64
import hashlib

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def frame(reader):
    """Opcode and payload of the next frame, unmasked."""
    first, second = await reader.readexactly(2)
    length = second & 0x7F
    if length == 126:
        length = int.from_bytes(await reader.readexactly(2), "big")
    elif length == 127:
        length = int.from_bytes(await reader.readexactly(8), "big")
    if length > 1 << 20:
        raise ConnectionError("a frame of more than 1 MiB")
    mask = await reader.readexactly(4) if second & 0x80 else b"\0\0\0\0"
    payload = await reader.readexactly(length)
    return first & 0x0F, bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


def framed(opcode, payload):
    length = len(payload)
    if length < 126:
        return bytes([0x80 | opcode, length]) + payload
    if length < 1 << 16:
        return bytes([0x80 | opcode, 126]) + length.to_bytes(2, "big") + payload
    return bytes([0x80 | opcode, 127]) + length.to_bytes(8, "big") + payload


async def serve(reader, writer):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(
            (name.strip().lower(), value.strip())
            for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
        )
        key = fields.get(b"sec-websocket-key")
        if key is None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        while True:
            opcode, payload = await frame(reader)
            if opcode == 8:
                writer.write(framed(8, payload[:2]))
                await writer.drain()
                return
            writer.write(framed(10 if opcode == 9 else opcode, payload))
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", required=True)
    host, _, port = parser.parse_args().listen.rpartition(":")
    server = await asyncio.start_server(serve, host, int(port), backlog=1000)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
