# SPDX-License-Identifier: Apache-2.0
"""A step's timeline made up for the page's tests: a stream of launches, a
second one that waits for the first, a host that waits for both."""
import sample

US = 1000


def operations(count):
    """COUNT kernels of 10 us on stream 0; every fifth is followed by a
    collective of 20 us on stream 1, which the next kernel waits for."""
    rows, now = [], 20 * US
    for i in range(count):
        rows.append({"track": 0, "start_ns": now, "duration_ns": 10 * US,
                     "launched_ns": 5 * US + i * 6 * US, "name": i % 2,
                     "module": 4 + i % 3, "operator": 7, "family": 8,
                     "basis": 10, "bytes": 0, "call": i,
                     "cause": 2 if i and i % 5 == 0 else 1 if i else 0,
                     "waited_for": len(rows) - 1})
        now += 11 * US
        if i % 5 == 4:
            rows.append({"track": 1, "start_ns": now, "duration_ns": 20 * US,
                         "launched_ns": now - 15 * US, "name": 2, "module": -1,
                         "operator": -1, "family": 9, "basis": 10,
                         "bytes": 1 << 20, "call": -1, "cause": 2,
                         "waited_for": len(rows) - 1})
            now += 21 * US
    return rows, now


def calls(rows, end):
    launched = [k for k, row in enumerate(rows) if row["call"] >= 0]
    for i, k in enumerate(launched):
        yield {"track": 2, "start_ns": i * 6 * US, "duration_ns": 4 * US,
               "name": 3, "operation": k, "waited_for": -1}
    yield {"track": 2, "start_ns": end - 5 * US, "duration_ns": 8 * US,
           "name": 11, "operation": -1, "waited_for": len(rows) - 1}


def columns(rows):
    rows = list(rows)
    return {key: [row[key] for row in rows] for key in rows[0]}


def timeline(count):
    rows, end = operations(count)
    return {"step_index": 1, "begin_ns": 10 * US, "end_ns": end,
            "names": ["gemm_" + sample.NASTY[0], "add_kernel",
                      "ncclDevKernel_AllReduce", "cudaLaunchKernel",
                      "model.blocks.0.mlp", "model.blocks.0.attn",
                      "model.blocks.1" + sample.NASTY[1], "aten::addmm",
                      "gemm", "collective", "fitted",
                      "cudaDeviceSynchronize"],
            "tracks": ["GPU 0, stream 7", "GPU 0, stream 8",
                       "host, thread 0"],
            "operations": columns(rows), "calls": columns(calls(rows, end)),
            "dropped": 3}, end - 10 * US


def timed(count=50):
    made = sample.result(sample.device(0, 3, 40))
    made["ranks"][0]["step_timeline"], length = timeline(count)
    parts = {"compute_ns": length // 2, "exposed_comm_ns": length // 4,
             "overlapped_comm_ns": length // 8, "exposed_copy_ns": 0,
             "host_bound_ns": length // 8,
             "other_ns": length - length // 2 - length // 4 - length // 8}
    made["ranks"][0]["steps"] = [
        {"index": i, "duration_ns": length + 1 - i, "low_ns": length // 2,
         "high_ns": 2 * length, "warm_up": not i, "sm_utilization": 0.5,
         **parts} for i in range(2)]
    made["time"] = {
        "step_ns": length, "low_ns": length // 2, "high_ns": 2 * length,
        "slowest_rank": 0, "step_index": 1, "step_is": "optimizer steps", "device_ns": length,
        "throughput": {"rank": 0, "module": sample.NASTY[0], "calls": 1,
                       "samples": 8, "samples_per_second": 10389.6,
                       "tokens": 8192, "tokens_per_second": 10638961.0},
        "mfu": 0.37, "unknown": 0, "basis": {"fitted": 0.8, "roofline": 0.2},
        "by_module": [{"module": "model.blocks.0", "ns": 12345678,
                       "operations": 9}],
        "by_operator": [{"operator": name[:90], "ns": 1e6 * (i + 1),
                         "operations": 2.5}
                        for i, name in enumerate(sample.NASTY)],
        "critical_path": [{"what": name[:90], "ns": 1e6, "operations": 3}
                          for name in sample.NASTY],
        "utilization": {"window_ns": 1000000 // 10,
                        "windows": [0.5, 1, 0.25, 0, 1, 0.75, 0.1]},
    }
    made["ranks"][0].update(step_index=1,
                            utilization=made["time"]["utilization"])
    return made


def profile():
    """An imported profile: no memory, and what was measured."""
    made = timed()
    made["verdict"], made["why"] = "unknown", "a profile has no memory calls"
    made["ranks"][0]["devices"] = []
    for step in made["ranks"][0]["steps"]:
        step["measured_ns"] = step["duration_ns"] + 1000
        step["measured"] = {"compute_ns": step["compute_ns"],
                            "exposed_comm_ns": step["exposed_comm_ns"],
                            "overlapped_comm_ns": step["overlapped_comm_ns"],
                            "exposed_copy_ns": 0, "other_ns": 0,
                            "sm_utilization": 0.4,
                            "sm_utilization_error": 0.01}
    made["time"]["utilization"]["measured"] = [0.4] * 7
    return made


def many():
    """As many operations as a page has."""
    return timed(50000)
