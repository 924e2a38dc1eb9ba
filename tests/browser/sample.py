# SPDX-License-Identifier: Apache-2.0
"""A result made up for the page's tests: right in form, measured nowhere.

    sample.py PAGE_TEMPLATE OUT.html [LAYERS]
"""
import json
import math
import sys

MIB = 1 << 20
NASTY = ['</script><script>alert(1)</script>', '<img src=x onerror=alert(1)>',
         "it's \"quoted\" & <b>bold</b>", "\u2028line\u2029", "模型.层.0",
         "a" * 300, "__proto__", "constructor.toString", "", "..", "\\u0000"]
PARTS = ("ln_1", "attn.qkv", "attn.out", "ln_2", "mlp.0", "mlp.1", "mlp.2")


def modules(layers):
    for layer in range(layers):
        for i, part in enumerate(PARTS):
            size = (1 + i + (layer * 7 + i * 3) % 5) * MIB // 8
            yield {"name": f"model.blocks.{layer}.{part}", "bytes": 9 * size,
                   "categories": {"parameter": size, "gradient": size,
                                  "optimizer": 2 * size,
                                  "activation": 5 * size}}
    for name in NASTY:
        yield {"name": name, "bytes": 3 * MIB,
               "categories": {"other": 2 * MIB, "parameter": MIB}}


def timeline(points, peak):
    for i in range(points):
        wave = abs(math.sin(i / points * math.pi * 3))
        fixed = 0.4 if i > points // 10 else 4 * i / points
        parts = {"parameter": fixed / 4, "optimizer": fixed / 2,
                 "gradient": fixed / 4 * wave, "activation": 0.45 * wave,
                 "temporary": 0.05 * (i % 7 == 0), "other": 0.01}
        held = {name: int(peak * part) for name, part in parts.items()}
        yield {"time_ns": 5_000_000_000 + i * 4_000_000,
               "allocated": sum(held.values()),
               "reserved": int(peak * (0.3 + 0.8 * min(1, 2 * i / points))),
               "categories": held}


def phases(points):
    names = ("forward", "backward", "optimizer")
    for i in range(9):
        start = 5_000_000_000 + i * points * 4_000_000 // 9
        yield {"step": i // 3, "phase": names[i % 3], "start_ns": start,
               "end_ns": start + points * 4_000_000 // 9,
               "peak_bytes": (40 + i) * MIB, "end_bytes": (30 + i) * MIB,
               "end_categories": {"parameter": 20 * MIB,
                                  "activation": (10 + i) * MIB}}


def segments():
    kinds = ("parameter", "activation", None, "gradient", "temporary")
    for i in range(60):
        size = (2 + i % 9 * 10) * MIB
        blocks, offset = [], 0
        while offset < size:
            length = min(size - offset, (1 + (i + offset // MIB) % 6) * MIB)
            kind = kinds[(i + offset // MIB) % 5]
            blocks.append({"offset": offset, "bytes": length,
                           "state": "active" if kind else "free",
                           "module": f"model.blocks.{i}.mlp" if kind else None,
                           "category": kind, "label": NASTY[i % len(NASTY)]})
            offset += length
        yield {"address": hex(0x7f0000000000 + i * 64 * MIB), "bytes": size,
               "stream": 0, "pool": "large", "blocks": blocks}


def device(index, layers, points, ooms=()):
    found = list(modules(layers))
    peak = sum(m["bytes"] for m in found)
    held = {}
    for module in found:
        for name, size in module["categories"].items():
            held[name] = held.get(name, 0) + size
    capacity = int(1.3 * peak) + 800 * MIB
    used = int(1.12 * peak) + 550 * MIB
    return {
        "index": index, "capacity_bytes": capacity,
        "peak_allocated_bytes": peak, "peak_reserved_bytes": int(1.1 * peak),
        "peak_used_bytes": used, "headroom_bytes": capacity - used,
        "context_bytes": 500 * MIB, "libraries_bytes": 40 * MIB,
        "ooms": list(ooms), "categories_at_peak": held,
        "modules_at_peak": found,
        "modules": [{"name": m["name"], "bytes_at_peak": m["bytes"],
                     "own_peak_bytes": m["bytes"] + i % 100, "calls": i % 7}
                    for i, m in enumerate(found)],
        "phases": list(phases(points)),
        "timeline": list(timeline(points, peak)),
        "segments_at_peak": list(segments()),
        "things_at_peak": [{"label": name, "bytes": 5 * MIB, "count": 3}
                           for name in NASTY],
    }


def result(layers=12, points=2000):
    oom = {"requested_bytes": 12 << 30, "free_bytes": 3 << 30,
           "allocated_bytes": 30 << 30, "reserved_unallocated_bytes": MIB,
           "missing_bytes": 9 << 30, "by": "torch", "caught": False,
           "module": "model.head" + NASTY[0]}
    return {
        "schema": 1, "verdict": "oom", "exit_status": 120,
        "command": ["python", "train.py", NASTY[0]],
        "gpu": {"name": "sample", "device_name": "A sample card",
                "memory_bytes": 40 << 30},
        "torch": "2.11.0", "seconds": 6.8,
        "ranks": [{"rank": 0, "program": "python", "devices": [
            device(0, 3, 40), device(1, layers, points, [oom])]}],
        "advice": [{"text": "expandable_segments:True would save 1.20 GiB",
                    "command": "memsim replay --alloc-conf "
                               "expandable_segments:True run"}],
        "notes": ["a note " + NASTY[1]],
    }


def page(template, data):
    """As report_html.c does it."""
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return template.replace("@RESULT@", text)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        template = file.read()
    layers = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(page(template, result(layers)))


if __name__ == "__main__":
    main()
