"""Takes connections, reads what comes, and never says a word.

Usage: silent.py --listen ADDR
"""

import argparse
import asyncio


async def serve(reader, writer):
    try:
        while await reader.read(4096):
            pass
    except OSError:
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
