# SPDX-License-Identifier: Apache-2.0
"""Cuts the power below a daemon with journals, and starts it again: README.md says how.

usage: daemon_crash.py FILE_SYSTEM IMAGES

CRASH_DISK and SPANFLAME name the programs, as ctest does."""

import collections
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

from support import journaled, kill_load, otlp, process, profiles, sink  # noqa: E402
from support.ports import free_port  # noqa: E402

ROADS = (("grpc", "traces"), ("http", "traces"), ("grpc", "profiles"), ("http", "profiles"))
PIPELINES = {
    "traces": ("otlp", "trace_profile_join, batch"),
    "profiles": ("otlp", "trace_profile_join, batch"),
}
PAD_MAX = 20000
SKIPPED = 77
ARRIVE_WITHIN_S = 60
# One image in so many is cut again while it recovers and takes more requests.
SECOND_CUTS_ONE_IN = 10
SECOND_CUTS = 2
MORE_REQUESTS = 10
SECTOR_BYTES = 512
BLOCK_BYTES = 4096  # a file system's superblock may not be torn
# An item that was delivered may come again until a later commit has put that on disk: so many
# requests that its pipeline acknowledged after the delivery. Batches and groups are smaller.
DUPLICATE_WITHIN = 50


class Wrong(Exception):
    """The daemon broke a promise."""


class Disk:
    """What crash_disk lends."""

    def __init__(self):
        self.volume = os.environ["CRASH_DISK_VOLUME"]
        connection = socket.socket(fileno=int(os.environ["CRASH_DISK_FD"]))
        connection.set_inheritable(False)
        self._file = connection.makefile("rw")
        self._lock = threading.Lock()

    def ask(self, *words):
        """(whether it worked, the result or the reason)."""
        with self._lock:
            self._file.write(" ".join(map(str, words)) + "\n")
            self._file.flush()
            word, _, rest = self._file.readline().rstrip("\n").partition(" ")
        return word == "ok", rest

    def do(self, *words):
        done, rest = self.ask(*words)
        if not done:
            raise Wrong(f"{words}: {rest}")
        return rest

    def count(self):
        return int(self.do("count"))

    def save(self):
        return int(self.do("save"))

    def events(self, first):
        return self.do("events", first).split()


class Knowledge:
    """What had happened at a moment, from the marks in the log before it."""

    def __init__(self, other=None):
        self.sent = set(other.sent) if other else set()
        self.ok = set(other.ok) if other else set()
        # Delivered items: how many requests of their pipeline had been acknowledged by then.
        self.got = dict(other.got) if other else {}
        # Delivered, but the daemon ended before that was on the disk for sure.
        self.open = set(other.open) if other else set()
        self.acknowledged = collections.Counter(other.acknowledged if other else ())

    def apply(self, event, items):
        if not event.startswith("M"):
            return
        kind, serial = event[1:].split(":")
        serial = int(serial)
        if kind == "sent":
            self.sent.add(serial)
        elif kind == "ok":
            self.ok.add(serial)
            self.acknowledged[items[serial][0]] += 1
        elif kind == "start":
            for serial in self.got:
                if self.distance(serial, items) <= DUPLICATE_WITHIN:
                    self.open.add(serial)
        else:
            self.got[serial] = self.acknowledged[items[serial][0]]
            self.open.discard(serial)

    def distance(self, serial, items):
        """How many requests were acknowledged in its pipeline since it was delivered."""
        return self.acknowledged[items[serial][0]] - self.got[serial]


class Sink(sink.Sink):
    """Notes what it got in the log, before it responds."""

    note = None

    def _take(self, path, headers, body):
        reply = super()._take(path, headers, body)
        if reply.status == 200:
            Sink.note(path, headers, body)
        return reply


class Machine:
    """One disk with its file system, the daemon on it, its clients and its back-end."""

    def __init__(self, images, seed):
        self.images = images
        self.choice = random.Random(seed)
        self.disk = Disk()
        self.ports = {kind: free_port() for kind in ("grpc", "http")}
        self.items = {}  # serial: its signal and its pad
        self.wrong = []
        self.arrived = collections.Counter()
        self.changed = threading.Condition()
        self.run_number = 0  # of the daemon that runs; what an earlier one sent does not count
        self.counts = collections.Counter()
        Sink.note = self.take
        self.back_end = kill_load.BackEnd(free_port(), Sink)
        storage = f"{{directory: '{self.disk.volume}/journal', create_directory: true, "
        self.config = journaled.config(
            self.ports,
            self.back_end,
            storage + "fsync: true, max_size: 16MiB}",
            PIPELINES,
            processors="  trace_profile_join: {hold: 100ms}\n",
            keys="    compression: none\n    headers: {run: 'RUN'}\n",
            # A request that is refused for so long beside others that pass would be dropped.
            max_elapsed_time="0s",
        )

    def note(self, kind, serial, *item):
        if item:
            self.items[serial] = item
        self.disk.do("mark", f"{kind}:{serial}")

    def take(self, path, headers, body):
        """A request that the back-end accepts: every item in it has the bytes that were sent."""
        try:
            serials = self.check(path, body)
        except Exception as error:  # noqa: BLE001 any failure to read it is the daemon's
            self.wrong.append(f"{path}: {error!r}")
            serials = ()
        with self.changed:
            if headers["run"] != str(self.run_number):
                return
            for serial in serials:
                self.note("got", serial)
            self.arrived.update(serials)
            self.changed.notify_all()

    def check(self, path, body):
        request = kill_load.DECODERS[path].FromString(body)
        signal_name = "traces" if path == "/v1/traces" else "profiles"
        strings = []
        if signal_name == "traces":
            for span in otlp.spans_of([body]).values():
                pads = [pair.value.string_value for pair in span.attributes if pair.key == "pad"]
                found = kill_load.marks_of(span.name.encode())
                if len(found) != 1 or len(pads) != 1:
                    raise Wrong(f"a span {span.name!r} that was not sent")
                strings.append((found[0], pads[0]))
        else:
            table = request.dictionary.string_table
            sizes = {text for text in table if not text.strip("x")}
            for serial in kill_load.marks_of("\n".join(table).encode()):
                pad = "x" * self.items[serial][1] if serial in self.items else ""
                strings.append((serial, pad if pad in sizes else None))
        for serial, pad in strings:
            sent = self.items.get(serial)
            if sent is None or sent[0] != signal_name or pad != "x" * sent[1]:
                raise Wrong(f"item {serial} is not what was sent: {sent}")
        return [serial for serial, _ in strings]

    def start(self):
        with self.changed:
            self.run_number += 1
            self.arrived.clear()
        self.note("start", 0)
        self.server = process.Server(self.config.replace("RUN", str(self.run_number)))
        try:
            self.server.wait_until_ready()
        except AssertionError as error:
            raise Wrong(f"the start fails: {error}")

    def kill(self):
        alive = self.server.process.poll() is None
        self.server.process.kill()
        self.server.wait()
        with self.changed:
            self.run_number += 1
        log = self.server.log()
        self.server.close()
        if not alive or re.search(r"Sanitizer|Assertion|runtime error", log):
            raise Wrong(f"the daemon ended: {log}")
        return log

    def load(self, roads):
        first = max(self.items, default=0) + 1
        seed = self.choice.randrange(1 << 30)
        return kill_load.Load(roads, self.ports, seed, PAD_MAX, first, self.note)

    def record(self, wanted):
        """Runs a busy daemon, with kills and stops and a back-end that comes and goes."""
        states = (self.back_end.up, self.back_end.up, self.back_end.refuse, self.back_end.away)
        self.disk.do("mount")
        rounds = 4
        for _ in range(rounds):
            self.choice.choice(states)()
            self.start()
            load = self.load(ROADS)
            try:
                for _ in range(4):
                    if not load.wait_for_more(wanted // rounds // 4 + 1, 60):
                        raise Wrong(f"requests are not taken: {load.refusals}")
                    self.choice.choice(states)()
            finally:
                if self.choice.random() < 0.5:
                    load.pause()
                    if self.server.stop() != 0:
                        raise Wrong(f"a stop fails: {self.server.log()}")
                    self.server.close()
                else:
                    self.kill()
                load.close()
        self.back_end.up()
        self.disk.do("unmount")

    def wait_for(self, wanted):
        with self.changed:
            self.changed.wait_for(lambda: not wanted - self.arrived.keys(), ARRIVE_WITHIN_S)
            return wanted - self.arrived.keys()

    def run_image(self, known, goes_on):
        """Starts the machine again. False: the file system does not mount."""
        if not self.disk.ask("mount")[0]:
            return False
        wanted = known.ok - known.got.keys()
        self.start()
        lost = self.wait_for(wanted)
        with self.changed:
            arrived = set(self.arrived)
        if goes_on and not lost:
            load = self.load([("http", "traces"), ("http", "profiles")])
            is_taken = load.wait_for_more(MORE_REQUESTS, 30)
            load.pause()
            load.close()
            if not is_taken or self.wait_for(set(load.acknowledged)):
                raise Wrong("requests after the start are refused or lost")
        log = self.kill()
        self.disk.do("unmount")
        self.counts["acknowledged"] += len(wanted)
        self.counts["lost"] += len(lost)
        if self.wrong:
            raise Wrong(f"wrong bytes: {self.wrong[:3]}; {len(lost)} lost")
        if lost:
            raise Wrong(f"{len(lost)} of {len(wanted)} lost: {sorted(lost)[:20]}\n{log}")
        if arrived - known.sent:
            raise Wrong(f"never sent before the cut: {sorted(arrived - known.sent)[:20]}")
        for serial in arrived & known.got.keys():
            self.counts["duplicates"] += 1
            if serial in known.open:
                continue
            later = known.distance(serial, self.items)
            self.counts["duplicate_distance"] = max(self.counts["duplicate_distance"], later)
            if later > DUPLICATE_WITHIN:
                raise Wrong(f"item {serial} comes again, {later} acknowledgements after delivery")
        # Groups that were being written may be reported, for no client got OK for them.
        corrupt = sum(map(int, re.findall(r'cannot be read.*"records": (\d+)', log)))
        if corrupt > len(known.sent - known.ok):
            raise Wrong(f"{corrupt} records are reported corrupt:\n{log}")
        return True

    def try_image(self, known, stable, cut, goes_on):
        disk = self.disk
        before, log_end = disk.save(), disk.count()
        seed = self.choice.randrange(1, 1 << 60)
        image = before
        try:
            disk.do("put", stable, cut, SECTOR_BYTES, seed)
            image = disk.save()
            if not self.run_image(known, goes_on):
                self.counts["torn"] += 1
                disk.do("restore", before)
                disk.do("truncate", log_end)
                disk.do("put", stable, cut, BLOCK_BYTES, seed)
                image = disk.save()
                if not self.run_image(known, goes_on):
                    raise Wrong("the file system does not mount")
        except Wrong:
            path = os.path.abspath(f"daemon-crash-{os.environ['CRASH_DISK_TYPE']}.img")
            if self.server.process.poll() is None:
                self.server.process.kill()
                self.server.wait()
            disk.ask("unmount")
            disk.ask("restore", image)
            disk.ask("export", path)
            print(f"cut after entry {cut}; the image is {path}", file=sys.stderr)
            raise
        self.counts["images"] += 1
        disk.do("restore", image)

    def cut_at(self, known, stable, cut):
        """One image, and sometimes those of cuts while it starts again."""
        disk = self.disk
        log_end, before = disk.count(), disk.save()
        is_second = self.counts["first"] % SECOND_CUTS_ONE_IN == 0
        self.counts["first"] += 1
        self.try_image(known, stable, cut, is_second)
        events = disk.events(log_end) if is_second else []
        image = disk.save()
        for _ in range(SECOND_CUTS if events else 0):
            again = self.choice.randint(1, len(events))
            flushed = again
            while flushed > 0 and events[flushed - 1] != "F":
                flushed -= 1
            later = Knowledge(known)
            for event in events[:again]:
                later.apply(event, self.items)
            disk.do("put_all", log_end, log_end + flushed)
            self.try_image(later, log_end + flushed, log_end + again, True)
            self.counts["second"] += 1
            disk.do("restore", image)
        disk.do("truncate", log_end)
        disk.do("restore", before)

    def run(self):
        disk = self.disk
        saved, first = disk.save(), disk.count()
        self.record(max(200, self.images))
        disk.do("restore", saved)
        events = disk.events(first)
        flushes = [i for i, event in enumerate(events) if event == "F"]
        cuts = {i + 1 for i in flushes}
        if len(cuts) > self.images // 2:
            cuts = set(self.choice.sample(sorted(cuts), self.images // 2))
        cuts = collections.Counter(cuts)
        while cuts.total() < self.images * 5 // 6:
            cuts[self.choice.randint(1, len(events))] += 1
        now, stable, at = Knowledge(), 0, 0
        for cut in sorted(cuts.elements()):
            for event in events[at:cut]:
                now.apply(event, self.items)
            at = cut
            flushed = max((i + 1 for i in flushes if stable <= i < cut), default=stable)
            disk.do("put_all", first + stable, first + flushed)
            disk.do("settle")
            stable = flushed
            self.cut_at(now, first + stable, first + cut)
            self.counts["flushes"] += cut == stable
        if self.counts["acknowledged"] < self.counts["images"] or self.wrong:
            raise Wrong(f"nothing to lose, or wrong bytes: {self.wrong}")
        self.counts["sent"] = len(now.sent)


def machine(images, seed):
    runner = Machine(images, seed)
    try:
        runner.run()
    except Wrong as error:
        print(f"FAILED: {error}", file=sys.stderr)
        runner.counts["failed"] += 1
    print(json.dumps(runner.counts), flush=True)
    os._exit(1 if runner.counts["failed"] else 0)


def main():
    if sys.argv[1] == "machine":
        machine(int(sys.argv[2]), int(sys.argv[3]))
    name = sys.argv[1]
    images = int(os.environ.get("JOURNAL_CRASH_IMAGES") or sys.argv[2])
    seed = int(os.environ.get("JOURNAL_CRASH_SEED") or 1)
    jobs = int(os.environ.get("JOURNAL_CRASH_JOBS") or 6)
    started = time.monotonic()
    running = [
        subprocess.Popen(
            [os.environ["CRASH_DISK"], name, sys.executable, os.path.abspath(__file__)]
            + ["machine", str(-(-images // jobs)), str(seed + job)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CRASH_DISK_TYPE": name},
        )
        for job in range(jobs)
    ]
    total = collections.Counter()
    code = 0
    for job in running:
        said = job.communicate()[0]
        code = code if code == 1 else job.returncode
        if job.returncode == SKIPPED:
            print(said, end="")
        elif said:
            counts = json.loads(said.splitlines()[-1])
            distance = max(total["duplicate_distance"], counts.pop("duplicate_distance", 0))
            total.update(counts)
            total["duplicate_distance"] = distance
    if code != SKIPPED:
        print(
            f"{name}: {total['sent']} requests; {total['images']} images: {total['flushes']} at "
            f"flushes, {total['second']} cut again while they started, {total['torn']} needed "
            f"whole blocks; {total['acknowledged']} acknowledged items had to arrive, "
            f"{total['lost']} lost; {total['duplicates']} duplicates, the latest "
            f"{total['duplicate_distance']} acknowledgements after its delivery; "
            f"{'FAILED' if code else '0 failed starts, 0 wrong'}; "
            f"{time.monotonic() - started:.1f} s"
        )
    return code


if __name__ == "__main__":
    sys.exit(main())
