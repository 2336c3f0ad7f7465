#!/usr/bin/env python3
"""Writes the fixtures of this folder with a program of the version before.

usage: write.py PROGRAM

PROGRAM is `laneway` as built from the commit that README.md names. Needs root, libfaketime and redis-server 7.0.
Everything is written to this folder: `closed.tar.gz`, `killed.tar.gz`, `redis.rdb.gz`, and beside each a `.json` with
what that program answered about its store at the end.

Every fixture looks like one that was moved here from another machine half a year ago: the wall clock is set back with
libfaketime, and the kernel's boot id is another one. So tests read the same on every machine and at any later date.
"""

import atexit
import base64
import gzip
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
WRITTEN_AT = 1_780_315_200  # 2026-06-01T12:00:00Z
BOOT_ID = "0d1f5e0c-5a6e-4f0e-9f0e-000000000001"
# Longer than the version after it accepts.
CENTURY = "36500d"
SEGMENT_MIB = 64
EMITS = 4_000
STARTED_AT = int(time.time())


def environment():
    library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    # jemalloc, which Debian's Redis uses, and libfaketime wait for each other unless another allocator comes first.
    allocator = library.parent.parent / "libc_malloc_debug.so.0"
    return {
        "PATH": os.environ["PATH"],
        "LD_PRELOAD": f"{allocator}:{library}",
        "FAKETIME": f"{WRITTEN_AT - STARTED_AT:+d}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "LANEWAY_LOG_LEVEL": "error",
    }




class Server:
    """`laneway serve` on a store, with another boot id."""

    def __init__(self, program, folder, store, *options):
        boot_id = folder / "boot_id"
        boot_id.write_text(BOOT_ID + "\n")
        mounted = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
        serve = [program, "serve", "--store", store, "--listen", "127.0.0.1:0", *options]
        self.child = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", mounted, boot_id, *serve],
            cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True,
        )
        atexit.register(self.child.kill)
        for line in self.child.stdout:
            if line.startswith("ready "):
                self.host = line.split("http://")[1].strip()
                break
        else:
            sys.exit("the server did not start")
        self.connection = http.client.HTTPConnection(self.host, timeout=70)

    def call(self, method, path, body=None, headers=None, ok=True):
        body = None if body is None else json.dumps(body, separators=(",", ":"))
        headers = {"content-type": "application/json", **(headers or {})}
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if ok and answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {text}")
        return answer.status, json.loads(text) if text else None

    def get(self, path):
        return self.call("GET", path)[1]

    def put(self, path, body):
        return self.call("PUT", path, body)[1]

    def post(self, path, body, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", path, body, headers)[1]

    def append(self, stream, *events):
        return self.post(f"/v1/streams/{stream}/events", list(events))["events"]

    def job(self, stream, body, **headers):
        return self.post(f"/v1/streams/{stream}/jobs", body, **headers)["id"]

    def claims(self, processor, lanes=100, lease="30s", wait="300ms", events=1):
        body = {"wait": wait, "lease": lease, "max_lanes": lanes, "max_events": events, "worker": "writer"}
        return self.post(f"/v1/processors/{processor}/claim", body)["claims"]

    def settle(self, processor, claim, **settlement):
        settlement = {"outcome": "done", **settlement, "claim": claim["claim"]}
        answer = self.post(f"/v1/processors/{processor}/settle", {"settlements": [settlement]})
        assert answer["settlements"][0]["accepted"], answer

    def work(self, processor, answers):
        """Claims and settles until nothing is left to claim. `answers` maps a key to the fields of its settlement."""
        idle = 0
        while idle < 2:
            claims = self.claims(processor)
            idle = 0 if claims else idle + 1
            for claim in claims:
                answer = answers.get(claim.get("key"), {})
                self.settle(processor, claim, **(answer(claim) if callable(answer) else answer))

    def end(self, number):
        self.connection.close()
        self.child.send_signal(number)
        self.child.wait()


def until(what, ask):
    begun = time.monotonic()
    while not ask():
        if time.monotonic() - begun > 60:
            sys.exit(f"{what}: not within a minute")
        time.sleep(0.1)


def claim_all(server, processor, keys):
    """The claims of these lanes, which must be all that there is to claim."""
    claims = {}
    while len(claims) < len(keys):
        claims.update((claim.get("key"), claim) for claim in server.claims(processor, lease="1h", wait="20s"))
    assert sorted(claims) == sorted(keys), claims
    return claims


def define(server):
    streams = {
        "orders": {"partitions": 2, "keep": CENTURY, "keep_done": CENTURY, "responder": "charge"},
        "payments": {"partitions": 1, "keep_done": CENTURY},
        "strict": {"partitions": 1},
        "objects": {"partitions": 1, "mode": "latest"},
        "later": {"partitions": 1, "keep_done": CENTURY},
        "bills": {"partitions": 1, "keep": CENTURY},
        "brief": {"partitions": 1, "keep": "0s", "forget_lanes_after": "1d"},
        "full": {"partitions": 1, "max_pending": 3},
        "removed": {"partitions": 1},
        "last": {"partitions": 1},
        "fan": {"partitions": 1},
        "fanned": {"partitions": 1},
    }
    for name, settings in streams.items():
        server.put(f"/v1/streams/{name}", settings)
    once = {"max_attempts": 1}
    processors = {
        "charge": {"stream": "orders", "retry": {"max_attempts": 4294967295, "backoff_max": CENTURY}},
        "audit": {"stream": "orders", "types": ["order.*"], "concurrency": 7, "timeout": "90s"},
        "refund": {"stream": "payments", "retry": once, "on_failure": "dead_letter"},
        "ledger": {"stream": "payments", "retry": once, "on_failure": "dead_letter_lane"},
        "guard": {"stream": "strict", "retry": once, "on_failure": "halt"},
        "newest": {"stream": "objects", "keep_last": True},
        "mail": {"stream": "later", "rate": 50, "rate_per_key": 5},
        "bill": {"stream": "bills", "start": 2},
        "sweep": {"stream": "brief", "retry": once, "on_failure": "drop"},
        "stopped": {"stream": "full"},
        "unowned": {"stream": "last"},
        "fan": {"stream": "fan"},
        "removed": {"stream": "removed"},
    }
    for name, settings in processors.items():
        server.put(f"/v1/processors/{name}", {"pull": True, **settings})
    schedules = {
        "nightly": {"stream": "orders", "cron": "0 3 * * *", "zone": "Europe/Berlin", "key": "night",
                    "data": {"report": "daily"}, "processor": "charge", "overlap": "skip", "catch_up": "none"},
        "weekly": {"stream": "later", "every": "7d", "paused": True, "type": "week", "catch_up": "none"},
    }
    for name, settings in schedules.items():
        server.put(f"/v1/schedules/{name}", settings)


def fill(server, known):
    """Stores one of everything. What cannot be read back later goes to `known`."""
    # Lanes that ran, with state, object, headers, types and keys of all kinds.
    binary = base64.b64encode(b"\xff\x00key").decode()
    for number in range(1, 4):
        server.append("orders", {"key": "ann", "type": "order.paid", "data": {"n": number},
                                 "headers": {"trace": f"t{number}"}, "object": {"paid": number}})
        server.append("orders", {"key_b64": binary, "type": "order.paid", "data": number})
        server.append("orders", {"data": {"keyless": number}})
    known["small"] = server.job("orders", {"key": "ann", "type": "job", "data": "small"})
    known["large"] = server.job("orders", {"key": "large", "data": "large"})
    known["long"] = server.job("orders", {"key": "ann", "data": "long", "keep": CENTURY})
    known["taken"] = server.job("orders", {"key": "ann", "data": "taken"})
    known["forgotten"] = server.job("orders", {"key": "ann", "data": "forgotten"})
    named = {"key": "named", "data": {"amount": 5}}
    known["named"] = server.job("orders", named, idempotency_key="order-17")
    known["batch"] = server.post("/v1/streams/orders/jobs", [{"key": f"batch-{n}", "data": n} for n in range(3)])
    known["dedup"] = server.append("orders", {"key": "ann", "dedup_id": "once", "data": "once"})[0]

    def state(claim):
        count = (claim.get("state") or {"runs": 0})["runs"] + 1
        event = claim["events"][0]
        is_large = event.get("data") == "large"
        result = "x" * (3 << 20) if is_large else {"ran": event.get("data"), "count": count}
        return {"state": {"runs": count}, "result": result}

    server.work("charge", {"ann": state, "large": state, "named": state, None: state})
    server.work("audit", {})
    known["retried"] = server.post(f"/v1/jobs/{known['small']}/retry", None)["id"]
    server.work("charge", {"ann": state})
    server.post(f"/v1/jobs/{known['taken']}/take", None)
    server.call("DELETE", f"/v1/jobs/{known['forgotten']}")

    # Lanes that are held up, each with events behind its head.
    for key in ["parked", "retrying", "paused", "claimed", "skipped"]:
        server.append("orders", *({"key": key, "type": "order.new", "data": {"n": n}} for n in range(1, 6)))
    known["parked"] = server.job("orders", {"key": "parked", "data": "behind"})
    known["cancelled"] = server.job("orders", {"key": "parked", "data": "cancelled"})
    server.post("/v1/streams/orders/lanes/pause", {"key": "paused", "processor": "charge"})
    claims = claim_all(server, "charge", ["parked", "retrying", "claimed", "skipped"])
    server.settle("charge", claims["parked"], outcome="fail", error="card stolen")
    server.settle("charge", claims["retrying"], outcome="retry", error="no line", retry_after=CENTURY)
    server.settle("charge", claims["skipped"], outcome="fail", error="to be skipped")
    known["claim"] = {name: claims["claimed"][name] for name in ("claim", "fence")}
    server.post("/v1/streams/orders/lanes/skip", {"key": "skipped", "processor": "charge"})
    server.post(f"/v1/jobs/{known['cancelled']}/cancel", None, prefer="wait=20")

    # Dead letters: single ones, and a lane that diverts.
    server.append("payments", *({"key": key, "type": "pay", "data": {"n": n}, "priority": 1}
                                for key in ["bad", "good", "diverts"] for n in range(1, 4)))
    known["failed"] = server.job("payments", {"key": "bad", "data": "job", "processor": "refund"})
    server.work("refund", {"bad": {"outcome": "fail", "error": "refused"}})
    server.work("ledger", {"diverts": {"outcome": "fail", "error": "no account"}})
    server.append("payments", {"key": "diverts", "data": {"n": 4}})
    server.work("refund", {})
    server.work("ledger", {})

    # A halted partition, a paused processor, a stream that is full.
    server.append("strict", {"key": "a", "data": 1}, {"key": "a", "data": 2})
    server.work("guard", {"a": {"outcome": "fail", "error": "halt here"}})
    server.append("full", *({"key": f"k{n}", "data": n} for n in range(3)))
    server.post("/v1/processors/stopped/pause", None)

    # Newest wins: done, superseded, stale, and an object that is gone.
    server.append("objects", {"key": "doc", "generation": 3, "data": "three"})
    server.work("newest", {})
    server.append("objects", *({"key": "doc", "generation": n, "data": f"doc {n}"} for n in (5, 6, 7)))
    server.append("objects", {"key": "gone", "generation": 1, "data": "x"}, {"key": "gone", "generation": 2, "delete": True})
    server.append("objects", {"key": "gone", "incarnation": 1, "generation": 1, "data": "again"})

    # Delays, dates, times to live, urgent events.
    far = "2099-01-02T03:04:05Z"
    server.append("later", {"key": "date", "run_at": far, "data": "dated"}, {"key": "delay", "delay": "3600d", "data": "delayed"})
    known["scheduled"] = server.job("later", {"key": "date", "run_at": far, "data": "job", "keep": CENTURY})
    known["unscheduled"] = server.job("later", {"key": "date", "run_at": far, "data": "cancelled"})
    server.post(f"/v1/jobs/{known['unscheduled']}/cancel", None, prefer="wait=20")
    server.append("later", {"key": "hold", "delay": "1h", "delay_mode": "hold", "data": "held"}, {"key": "hold", "data": "behind"})
    known["expired"] = server.job("later", {"key": "expired", "ttl": "1ms", "data": "late"})
    known["lasting"] = server.job("later", {"key": "lasting", "ttl": CENTURY, "data": "in time"})
    server.append("later", {"key": "urgent", "priority": 2, "data": "urgent"})

    # Emits, a stream that is trimmed behind its processor, a stream and a processor that are gone.
    server.append("orders", {"key": "emits", "data": "one"})
    emits = [{"stream": "bills", "key": f"bill-{n % 2}", "type": "bill", "data": n} for n in range(6)]
    server.work("charge", {"emits": {"emit": emits}})
    server.append("brief", *({"key": f"k{n}", "data": n} for n in range(20)))
    server.work("sweep", {"k3": {"outcome": "fail"}})
    until("the trim", lambda: not server.get("/v1/streams/brief/events?partition=0")["events"])
    server.append("removed", {"key": "a", "data": 1})
    server.call("DELETE", "/v1/processors/removed")
    server.call("DELETE", "/v1/streams/removed")

    # Events and jobs that wait when the server ends.
    known["pending"] = server.job("orders", {"key": "pending", "data": {"wait": True}, "keep": CENTURY})
    server.append("orders", {"key": "ann", "type": "order.late", "data": "last"}, {"data": "keyless last"})
    known["unowned"] = [server.job("last", {"key": key, "data": key}) for key in ("a", "b")]


def fill_segments(server):
    """Enough for a sealed segment with a footer; an event at its begin and one behind it hold it."""
    server.put("/v1/streams/bulk", {"partitions": 1, "keep": "36500d"})
    for number in range(SEGMENT_MIB + 1):
        server.append("bulk", {"key": "bulk", "data": str(number % 10) * ((1 << 20) - 256)})


def file_requests(server, known):
    """Requests for a processor that nobody owns wait in the store."""
    status, answer = server.call("POST", "/v1/streams/last/lanes/pause", {"key": "b"})
    assert status == 202 and not answer["applied"], answer
    status, answer = server.call("POST", f"/v1/jobs/{known['unowned'][0]}/cancel")
    assert status == 202 and answer["status"] == "cancelling", answer


def emit_and_be_killed(server):
    """Ends the server while most of what a run emitted is still in its outbox."""
    server.append("fan", {"key": "fan", "data": "many"})
    claim = claim_all(server, "fan", ["fan"])["fan"]
    emits = [{"stream": "fanned", "key": "fan", "data": n} for n in range(EMITS)]
    server.settle("fan", claim, emit=emits)
    server.end(signal.SIGKILL)


def read_all(server):
    """Everything that can be read of the store, call by call."""
    paths = ["/v1/streams?limit=1000", "/v1/processors", "/v1/schedules", "/v1/dead-letters?limit=1000"]
    for stream in server.get("/v1/streams?limit=1000")["items"]:
        name = stream["name"]
        if name == "_laneway":
            continue
        paths.append(f"/v1/streams/{name}")
        paths.append(f"/v1/jobs?stream={name}&limit=1000")
        lanes = set()
        for partition in range(stream["partitions"]):
            path = f"/v1/streams/{name}/events?partition={partition}&limit=1000"
            if name != "bulk":
                paths.append(path)
            for event in server.get(path)["events"]:
                for field in ("key", "key_b64"):
                    if event.get(field) is not None:
                        lanes.add(f"{field}={urllib.parse.quote(event[field])}")
        paths += [f"/v1/streams/{name}/lane?{lane}" for lane in sorted(lanes)]
        for job in server.get(f"/v1/jobs?stream={name}&limit=1000")["items"]:
            paths.append(f"/v1/jobs/{job['id']}")
        for processor in server.get(f"/v1/streams/{name}")["processors"]:
            paths.append(f"/v1/streams/{name}/lanes?processor={processor['processor']}&limit=1000")
            paths.append(f"/v1/processors/{processor['processor']}")
    return {path: server.get(path) for path in paths}


def compact(value):
    """Long texts are kept as their length and first letter."""
    if isinstance(value, dict):
        return {name: compact(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [compact(inner) for inner in value]
    if isinstance(value, str) and len(value) > 10_000:
        return {"length": len(value), "of": value[0]}
    return value


def write(server_on, name):
    """Fills a store by two lives of a server; the second does not run one of the processors."""
    known = {}
    server = server_on()
    define(server)
    fill(server, known)
    if name == "closed":
        fill_segments(server)
    processors = [found["name"] for found in server.get("/v1/processors")["items"] if found["name"] != "unowned"]
    server.end(signal.SIGTERM)
    server = server_on("--processor", ",".join(processors))
    file_requests(server, known)
    answers = compact(read_all(server))
    lines = [f"{json.dumps(path)}: {json.dumps(body)}" for path, body in sorted(answers.items())]
    reads = ",\n".join(lines)
    (HERE / f"{name}.json").write_text(f'{{"known": {json.dumps(known, indent=1)},\n"reads": {{\n{reads}\n}}}}\n')
    if name == "closed":
        server.end(signal.SIGTERM)
    else:
        emit_and_be_killed(server)


def write_folder(program, name):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write(lambda *options: Server(program, folder, "file:./data", *options), name)
        # Segments are mostly zeros. tar leaves these out only of files that have holes.
        subprocess.run(["cp", "--recursive", "--sparse=always", folder / "data", folder / "packed"], check=True)
        tar = ["tar", "--create", "--sparse", "--owner=0", "--group=0", "--transform=s/^packed/data/",
               "--directory", folder, "packed"]
        packed = subprocess.run(tar, stdout=subprocess.PIPE, check=True).stdout
        (HERE / f"{name}.tar.gz").write_bytes(gzip.compress(packed, 9, mtime=0))


def write_redis(program):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        socket = folder / "redis.socket"
        redis = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
        redis = subprocess.Popen(redis, env=environment(), stdout=subprocess.DEVNULL)
        try:
            until("Redis", socket.exists)
            write(lambda *options: Server(program, folder, f"unix:{socket}", *options), "redis")
            subprocess.run(["redis-cli", "-s", socket, "SAVE"], check=True, stdout=subprocess.DEVNULL)
            dump = (folder / "dump.rdb").read_bytes()
        finally:
            redis.terminate()
            redis.wait()
        (HERE / "redis.rdb.gz").write_bytes(gzip.compress(dump, 9, mtime=0))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = shutil.which(os.path.abspath(sys.argv[1])) or sys.exit(f"{sys.argv[1]} is not a program")
    for name in ("closed", "killed"):
        write_folder(program, name)
    write_redis(program)


if __name__ == "__main__":
    main()
