# SPDX-License-Identifier: Apache-2.0
"""The journal's directory: full, read-only, missing, forbidden, or in use."""

import contextlib
import os
import subprocess

from support import case, client, journaled, kill_load, otlp, process
from support.ports import free_port

WITHIN_S = 120
SMALL_BYTES = 40 << 20  # one segment and little more
ROADS = (("grpc", "traces"), ("http", "traces"), ("grpc", "traces"), ("http", "traces"))
LARGE_PAD = 200_000
NOBODY_UID = 65534


def config(ports, back_end, storage):
    pipelines = {"traces": ("otlp", "batch")}
    return journaled.config(ports, back_end, storage, pipelines, keys=case.UNCOMPRESSED)


class Disk(journaled.Case):
    def storage(self, directory, more=""):
        return f"{{directory: '{directory}', fsync: true{more}}}"

    def start(self, storage):
        server = self.server(config(self.ports, self.back_end, storage))
        self.addCleanup(server.close)
        return server.wait_until_ready()

    def mount(self, *arguments):
        """Mounts a file system until the end of the test, or skips the test."""
        path = os.path.join(self.directory, "mounted")
        os.makedirs(path, exist_ok=True)
        if os.geteuid() != 0:
            self.skipTest("only root may mount a small file system")
        done = subprocess.run(["mount", *arguments, path], capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"no small file system can be mounted: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", path], check=True)
        return path

    def small_ext4(self):
        image = os.path.join(self.directory, "image")
        with open(image, "wb") as file:
            file.truncate(SMALL_BYTES)
        try:
            subprocess.run(["mkfs.ext4", "-q", image], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"no ext4 can be made: {error}")
        # The loop device goes with the mount.
        return self.mount("-o", "loop", image)

    def small_tmpfs(self):
        return self.mount("-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs")

    def fill_and_recover(self, storage):
        """Under load the disk fills while the back-end is away; then it returns."""
        self.back_end.refuse()
        server = self.start(storage)
        load = kill_load.Load(ROADS, self.ports, pad_max=LARGE_PAD)
        self.addCleanup(load.close)
        # Both protocols say when to retry.
        wanted = {("traces", "503", True), ("traces", "UNAVAILABLE", True)}
        self.assertTrue(
            load.wait(lambda load: wanted <= load.refusals.keys(), WITHIN_S),
            f"never full: {load.refusals}, {len(load.acknowledged)} acknowledged",
        )
        full = load.count()
        self.assertGreater(full, 50)
        refused = sum(load.refusals.values())
        load.wait(lambda load: sum(load.refusals.values()) > refused + 100, WITHIN_S)
        self.assertIsNone(server.process.poll(), server.log())
        self.back_end.up()
        self.assertTrue(load.wait_for_more(full // 2, WITHIN_S), "requests are not taken again")
        load.pause()
        self.assertEqual(set(load.refusals), wanted)
        missing = self.back_end.wait_for(set(load.acknowledged), WITHIN_S)
        self.assertEqual(len(missing), 0, f"lost of {load.count()}: {sorted(missing)[:20]}")
        self.assertEqual(server.stop(), 0, server.log())
        seen = self.back_end.collect()
        print(
            f"{full} until it was full, {load.count()} acknowledged, {len(missing)} lost, "
            f"{sum(seen.values()) - len(seen)} duplicates, refusals {load.refusals}"
        )


class Full(Disk):
    def test_max_size(self):
        self.fill_and_recover(self.storage(self.directory, ", max_size: 64MiB"))

    def test_ext4(self):
        self.fill_and_recover(self.storage(self.small_ext4()))

    def test_tmpfs(self):
        self.fill_and_recover(self.storage(self.small_tmpfs()))

    def test_a_kill_of_a_full_one(self):
        """Reading and delivering need no room."""
        storage = self.storage(self.small_ext4())
        self.back_end.away()
        server = self.start(storage)
        load = kill_load.Load(ROADS, self.ports, pad_max=LARGE_PAD)
        self.addCleanup(load.close)
        self.assertTrue(load.wait(lambda load: load.refusals, WITHIN_S), "never full")
        load.pause()
        server.process.kill()
        server.wait()
        self.back_end.up()
        server = self.start(storage)
        missing = self.back_end.wait_for(set(load.acknowledged), WITHIN_S)
        self.assertEqual(len(missing), 0, f"lost of {load.count()}: {sorted(missing)[:20]}")
        load.go_on()
        self.assertTrue(load.wait_for_more(10, WITHIN_S), "requests are not taken again")
        load.pause()
        self.assertEqual(self.back_end.wait_for(set(load.acknowledged), WITHIN_S), set())
        self.assertEqual(server.stop(), 0, server.log())


class Directory(Disk):
    def run_daemon(self, storage, **options):
        """Runs to the end; returns the log and the exit code."""
        path = os.path.join(self.directory, "config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config(self.ports, self.back_end, storage))
        os.chmod(self.directory, 0o755)
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                [process.binary(), "--config", path],
                capture_output=True,
                text=True,
                timeout=30,
                **options,
            )
            return done.returncode, done.stderr
        self.fail("it runs")

    def test_in_use_by_another_process(self):
        self.back_end.up()
        first = self.start(self.storage(self.directory))
        ports = self.ports
        self.ports = {kind: free_port() for kind in ports}
        code, said = self.run_daemon(self.storage(self.directory))
        self.assertEqual(code, 1)
        self.assertRegex(said, f"{self.directory}/traces is in use by another process")
        self.assertNotIn("Sanitizer", said)
        # The first one is not disturbed.
        body = otlp.traces(1).SerializeToString()
        self.assertEqual(client.post(ports["http"], "traces", body).status, 200)
        self.assertEqual(first.stop(), 0)
        self.start(self.storage(self.directory))

    def test_missing(self):
        missing = os.path.join(self.directory, "a", "b")
        code, said = self.run_daemon(self.storage(missing))
        self.assertEqual(code, 1)
        self.assertIn("extensions::file_storage::directory: directory must exist", said)
        self.start(self.storage(missing, ", create_directory: true, directory_permissions: '0700'"))
        self.assertEqual(os.stat(missing).st_mode & 0o777, 0o700)
        self.assertEqual(os.stat(os.path.dirname(missing)).st_mode & 0o777, 0o700)

    def test_of_a_pipeline_with_a_long_name(self):
        text = config(self.ports, self.back_end, self.storage(self.directory))
        self.back_end.up()
        for name in ("x" * 300, "ü" * 100):
            server = self.server(text.replace("    traces: {", f"    traces/{name}: {{"))
            server.wait_until_ready()
            body = otlp.traces(1).SerializeToString()
            self.assertEqual(client.post(self.ports["http"], "traces", body).status, 200)
            self.assertEqual(server.stop(), 0)

    def test_with_queues_of_the_go_collector(self):
        """They are named, and left as they are. Other files are not taken for one."""
        page = bytes.fromhex("0000000000000000 0400000000000000 edda0ced 02000000")
        files = {
            "exporter_otlp_http__traces": page.ljust(32768, b"\0"),
            "exporter_short": page[:18],
            "exporter_other": b"x" * 100,
            "receiver_filelog_": page,
        }
        for name, contents in files.items():
            with open(os.path.join(self.directory, name), "wb") as file:
                file.write(contents)
        os.mkdir(os.path.join(self.directory, "exporter_directory"))
        server = self.start(self.storage(self.directory))
        said = [line for line in server.lines if "queues of the Go collector" in line]
        self.assertEqual(len(said), 1, server.log())
        self.assertIn(f'"file": "{self.directory}/exporter_otlp_http__traces", "files": 1', said[0])
        self.assertEqual(server.stop(), 0, server.log())
        for name, contents in files.items():
            with open(os.path.join(self.directory, name), "rb") as file:
                self.assertEqual(file.read(), contents)

    def test_not_allowed(self):
        closed = os.path.join(self.directory, "closed")
        os.mkdir(closed, 0o755)
        options = {}
        if os.geteuid() == 0:
            options["user"] = NOBODY_UID
        else:
            os.chmod(closed, 0o555)
        code, said = self.run_daemon(self.storage(closed), **options)
        self.assertEqual(code, 1)
        self.assertRegex(said, f"cannot make the directory {closed}/traces: Permission denied")
        os.chmod(closed, 0o700)

    def test_read_only_with_a_backlog(self):
        path = self.small_tmpfs()
        storage = self.storage(path)
        self.back_end.away()
        server = self.start(storage)
        load = kill_load.Load(ROADS, self.ports)
        self.addCleanup(load.close)
        self.assertTrue(load.wait_for_more(100, WITHIN_S))
        load.pause()
        server.process.kill()
        server.wait()
        subprocess.run(["mount", "-o", "remount,ro", path], check=True)
        self.back_end.up()
        server = self.start(storage)
        missing = self.back_end.wait_for(set(load.acknowledged), WITHIN_S)
        self.assertEqual(len(missing), 0, f"lost of {load.count()}: {sorted(missing)[:20]}")
        before = load.count()
        load.go_on()
        self.assertTrue(
            load.wait(lambda load: sum(load.refusals.values()) > 20, WITHIN_S), "nothing is refused"
        )
        self.assertEqual(load.count(), before)
        self.assertIsNone(server.process.poll(), server.log())
        subprocess.run(["mount", "-o", "remount,rw", path], check=True)
        self.assertTrue(load.wait_for_more(10, WITHIN_S), "requests are not taken again")
        load.pause()
        for refusal in load.refusals:
            self.assertTrue(refusal[2], load.refusals)
        self.assertEqual(self.back_end.wait_for(set(load.acknowledged), WITHIN_S), set())
        self.assertEqual(server.stop(), 0, server.log())


if __name__ == "__main__":
    case.main()
