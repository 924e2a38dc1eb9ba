# SPDX-License-Identifier: Apache-2.0
"""Writes the events of Kineto traces as an SQLite export of Nsight Systems has
them: nsys_database.py TRACE.json[.gz]... OUT.sqlite; each trace is a process.

The tables and columns are those of exports of Nsight Systems 2024.5 (schema
3.13); --old gives those of an early version: names in the tables, no versions
in the names of calls."""
import gzip
import json
import re
import sqlite3
import sys

OPERATION = ["start INTEGER NOT NULL", "end INTEGER NOT NULL",
             "deviceId INTEGER NOT NULL", "contextId INTEGER NOT NULL",
             "streamId INTEGER NOT NULL", "correlationId INTEGER",
             "globalPid INTEGER"]
TABLES = {
    "StringIds": ["id INTEGER NOT NULL PRIMARY KEY", "value TEXT NOT NULL"],
    "CUPTI_ACTIVITY_KIND_KERNEL": OPERATION + [
        f"{name} INTEGER" for name in (
            "demangledName", "shortName", "mangledName", "registersPerThread",
            "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
            "staticSharedMemory", "dynamicSharedMemory", "graphNodeId")],
    "CUPTI_ACTIVITY_KIND_MEMCPY": OPERATION + [
        f"{name} INTEGER" for name in ("bytes", "copyKind", "srcKind", "dstKind")],
    "CUPTI_ACTIVITY_KIND_MEMSET": OPERATION + ["value INTEGER", "bytes INTEGER"],
    "CUPTI_ACTIVITY_KIND_RUNTIME": [
        "start INTEGER NOT NULL", "end INTEGER NOT NULL",
        "eventClass INTEGER NOT NULL", "globalTid INTEGER",
        "correlationId INTEGER", "nameId INTEGER NOT NULL",
        "returnValue INTEGER NOT NULL"],
    "NVTX_EVENTS": ["start INTEGER NOT NULL", "end INTEGER",
                    "eventType INTEGER NOT NULL", "text TEXT",
                    "globalTid INTEGER", "textId INTEGER"],
    "TARGET_INFO_GPU": ["id INTEGER NOT NULL", "name TEXT", "totalMemory INTEGER",
                        "cuDevice INTEGER"],
}
COPIES = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "PtoP": 10}
MEMORIES = {"Pageable": 0, "Pinned": 1, "Device": 2, "Array": 3, "Managed": 4}


def ns(event, key):
    whole, _, part = str(event.get(key, 0)).partition(".")
    return int(whole) * 1000 + int((part + "000")[:3])


class Database:
    def __init__(self, path, old):
        self.db = sqlite3.connect(path)
        self.old, self.strings = old, {}
        for name, columns in TABLES.items():
            if old and name == "StringIds":
                columns = ["id INTEGER", "value TEXT"]
            self.db.execute(f"CREATE TABLE {name} ({', '.join(columns)})")

    def add(self, table, **values):
        self.db.execute(
            f"INSERT INTO {table} ({', '.join(values)}) "
            f"VALUES ({', '.join('?' * len(values))})", list(values.values()))

    def string(self, text):
        if text not in self.strings:
            self.strings[text] = len(self.strings) + 7
            self.add("StringIds", id=self.strings[text], value=text)
        return self.strings[text]

    def operation(self, event, process):
        args = event["args"]
        return {"start": ns(event, "ts"), "end": ns(event, "ts") + ns(event, "dur"),
                "deviceId": args["device"], "contextId": 1,
                "streamId": args["stream"], "correlationId": args.get("correlation"),
                "globalPid": process << 24}

    def kernel(self, event, process):
        grid, block = (event["args"].get(k, [1, 1, 1]) for k in ("grid", "block"))
        name = self.string(event["name"])
        names = {"shortName": name} if self.old else {"demangledName": name,
                                                      "shortName": 0}
        self.add("CUPTI_ACTIVITY_KIND_KERNEL", **self.operation(event, process),
                 **names, gridX=grid[0], gridY=grid[1], gridZ=grid[2],
                 blockX=block[0], blockY=block[1], blockZ=block[2],
                 registersPerThread=event["args"].get("registers per thread", 0),
                 staticSharedMemory=event["args"].get("shared memory", 0) // 2,
                 dynamicSharedMemory=event["args"].get("shared memory", 0) -
                 event["args"].get("shared memory", 0) // 2)

    def copy(self, event, process):
        kinds = re.findall(r"\w+", event["name"])
        self.add("CUPTI_ACTIVITY_KIND_MEMCPY", **self.operation(event, process),
                 bytes=event["args"].get("bytes", 0), copyKind=COPIES[kinds[1]],
                 srcKind=MEMORIES[kinds[2]], dstKind=MEMORIES[kinds[3]])

    def event(self, event, process):
        category = event.get("cat")
        thread = process << 24 | (hash(str(event.get("tid"))) & 0xffff)
        if category == "kernel":
            self.kernel(event, process)
        elif category == "gpu_memcpy":
            self.copy(event, process)
        elif category == "gpu_memset":
            self.add("CUPTI_ACTIVITY_KIND_MEMSET",
                     **self.operation(event, process),
                     bytes=event["args"].get("bytes", 0), value=0)
        elif category in ("cuda_runtime", "cuda_driver"):
            name = event["name"] + ("" if self.old else "_v7000")
            self.add("CUPTI_ACTIVITY_KIND_RUNTIME", start=ns(event, "ts"),
                     end=ns(event, "ts") + ns(event, "dur"), eventClass=0,
                     globalTid=thread, nameId=self.string(name),
                     correlationId=event["args"].get("correlation"), returnValue=0)
        elif category == "user_annotation":
            text = {"text": event["name"]} if self.old else \
                {"textId": self.string(event["name"])}
            self.add("NVTX_EVENTS", start=ns(event, "ts"), eventType=59,
                     end=ns(event, "ts") + ns(event, "dur"), globalTid=thread,
                     **text)


def main():
    old = sys.argv[1] == "--old"
    *traces, out = sys.argv[1 + old:]
    database = Database(out, old)
    for process, path in enumerate(traces):
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            trace = json.load(file, parse_float=str)
        gpu = trace.get("deviceProperties", [{"name": "GPU"}])[0]
        database.add("TARGET_INFO_GPU", id=process, cuDevice=process,
                     name=gpu["name"], totalMemory=gpu.get("totalGlobalMem"))
        for event in trace["traceEvents"]:
            if event.get("ph") == "X":
                database.event(event, process + 100)
    database.db.commit()
    database.db.close()


if __name__ == "__main__":
    main()
