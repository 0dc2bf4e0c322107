"""A TCP proxy in this process that injects network faults. Faults are set by attributes, from any thread,
and apply to existing and new connections:

    proxy.refuse = True       new connections are closed at once, and existing ones are cut
    proxy.swallow = {"up"}    bytes in that direction ("up" to the server, "down" from it) are discarded
    proxy.stall = {"down"}    bytes in that direction are not read: the sender's buffers fill up
    proxy.left = {"up": 4096} that direction stalls after about so many more bytes
    proxy.delay_s = 0.2       every piece waits this long, times a random number up to 1
    proxy.hold_new = True     new connections wait; when released, they connect in a random order
    proxy.cut()               closes every connection;  proxy.half_close("up") ends one direction of each
    proxy.heal()              ends all faults
"""

import asyncio
import random
import threading


class TcpProxy:
    def __init__(self, host, port, seed=0):
        self.target = (host, port)
        self.chance = random.Random(seed)
        self.connections = set()
        self.accepted = 0
        self.heal()
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self.thread.start()
        started.wait()

    def heal(self):
        self.refuse = False
        self.swallow = frozenset()
        self.stall = frozenset()
        self.left = {}
        self.delay_s = 0
        self.hold_new = False

    @property
    def endpoint(self):
        return f"tcp://127.0.0.1:{self.port}"

    def cut(self):
        self._call(lambda: [writer.transport.abort() for pair in self.connections for writer in pair])

    def half_close(self, way):
        end = 1 if way == "up" else 0

        def close():
            for pair in self.connections:
                if pair[end].can_write_eof():
                    pair[end].write_eof()
        self._call(close)

    def stop(self):
        self.cut()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def _call(self, function):
        done = threading.Event()

        def call():
            function()
            done.set()
        self.loop.call_soon_threadsafe(call)
        done.wait()

    def _run(self, started):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self.loop.run_forever()

    async def _serve(self, reader, writer):
        self.accepted += 1
        if self.hold_new:
            while self.hold_new:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1 * self.chance.random())
        if self.refuse:
            writer.transport.abort()
            return
        try:
            up_reader, up_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, up_writer)
        self.connections.add(pair)
        try:
            await asyncio.gather(self._pump("up", reader, up_writer, pair),
                                 self._pump("down", up_reader, writer, pair))
        finally:
            self.connections.discard(pair)
            for end in pair:
                end.transport.abort()

    async def _pump(self, way, reader, writer, pair):
        try:
            while True:
                data = await reader.read(65536)
                while way in self.stall or self.left.get(way, 1) <= 0:
                    await asyncio.sleep(0.01)
                left = self.left
                if way in left:
                    left[way] -= len(data)
                if self.refuse:
                    raise ConnectionError
                if not data:
                    break
                if self.delay_s:
                    await asyncio.sleep(self.delay_s * self.chance.random())
                if way in self.swallow:
                    continue
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        except (ConnectionError, OSError, RuntimeError):
            for end in pair:
                end.transport.abort()
