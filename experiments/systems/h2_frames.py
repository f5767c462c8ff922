"""Frames of HTTP/2 (RFC 9113) for the programs of experiments/router-http2-faults.toml."""

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PROTOCOL_ERROR, REFUSED_STREAM = 1, 7
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MOST = 1 << 14


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def field(name, value):
    """A literal field that is never indexed, nothing compressed (RFC 7541 section 6.2.3)."""
    return b"\x10" + bytes([len(name)]) + name + bytes([len(value)]) + value


def reset(stream, code):
    return frame(RST_STREAM, 0, stream, code.to_bytes(4, "big"))


async def read(reader):
    """Kind, flags, stream and payload of the next frame."""
    head = await reader.readexactly(9)
    length = int.from_bytes(head[:3], "big")
    if length > MOST:
        raise ConnectionError(f"a frame of {length} bytes")
    stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
    return head[3], head[4], stream, await reader.readexactly(length)
