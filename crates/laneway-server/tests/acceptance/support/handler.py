"""A kept handler that does what the data of an event says, and tells of every run in runs.log.

In data: `ms`, a run takes up to so many milliseconds; `fails`, so many attempts ask to be tried again, after
`retry_after` if it is there; `poison`, it has failed for good; `until`, it fails for good until this file exists.
What is done counts the lane's events in its state and emits one effect.
"""
import json
import os
import sys
import time

log = os.open("runs.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def tell(word, run, event, outcome=None):
    step = {"word": word, "ref": event["ref"], "key": run["key"], "seq": event["seq"], "attempt": run["attempt"]}
    step.update(fence=run["fence"], outcome=outcome, data=event.get("data"))
    os.write(log, json.dumps(step).encode() + b"\n")


def settlement(run, event):
    wish = event.get("data") or {}
    if run["attempt"] <= wish.get("fails", 0):
        again = {"retry_after": wish["retry_after"]} if "retry_after" in wish else {}
        return {"outcome": "retry", "error": "not yet", **again}
    if wish.get("poison") or ("until" in wish and not os.path.exists(wish["until"])):
        return {"outcome": "fail", "error": "poison"}
    count = (run.get("state") or 0) + 1
    settled = {"ref": event["ref"], "seq": event["seq"], "fence": run["fence"]}
    effect = {"stream": "effects", "key": run["key"], "data": settled}
    return {"outcome": "done", "result": count, "state": count, "emit": [effect]}


for line in sys.stdin:
    run = json.loads(line)
    (event,) = run["events"]
    tell("begin", run, event)
    chance = int.from_bytes(os.urandom(2), "big") / 65536
    time.sleep(chance * (event.get("data") or {}).get("ms", 0) / 1000)
    answer = settlement(run, event)
    tell("end", run, event, answer["outcome"])
    try:
        os.write(1, json.dumps({"claim": run["claim"], **answer}).encode() + b"\n")
    except BrokenPipeError:
        break  # The server was killed.
