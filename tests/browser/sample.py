# SPDX-License-Identifier: Apache-2.0
"""Results made up for the page's tests: right in form, measured nowhere."""
import json
import math
import re

MIB = 1 << 20
NASTY = ['</script><script>alert(1)</script>', '<img src=x onerror=alert(1)>',
         "it's \"quoted\" & <b>bold</b>", "\u2028line\u2029", "two\nlines\0",
         "\u202eright to left", "模型.层.0", "long" * 2500,
         "a." * 5000 + "b", "__proto__", "constructor.toString", "..", "\\u0000"]
PARTS = ("ln_1", "attn.qkv", "attn.out", "ln_2", "mlp.0", "mlp.1", "mlp.2")


def modules(layers):
    yield {"name": "", "bytes": MIB, "categories": {"temporary": MIB}}
    for layer in range(layers):
        yield {"name": f"model.blocks.{layer}", "bytes": MIB,
               "categories": {"activation": MIB}}
        for i, part in enumerate(PARTS):
            size = (1 + i + (layer * 7 + i * 3) % 5) * MIB // 8
            yield {"name": f"model.blocks.{layer}.{part}", "bytes": 9 * size,
                   "categories": {"parameter": size, "gradient": size,
                                  "optimizer": 2 * size,
                                  "activation": 5 * size}}
    for name in NASTY:
        yield {"name": name, "bytes": 3 * MIB,
               "categories": {"other": 2 * MIB, "parameter": MIB}}


def called(found):
    """The modules of FOUND, each layer's in the layer."""
    above = {m["name"]: ".".join(m["name"].split(".")[:3]) for m in found
             if re.match(r"model\.blocks\.\d+\.", m["name"])}
    inside = {}
    for m in found:
        for name in {m["name"], above.get(m["name"], m["name"])}:
            inside[name] = inside.get(name, 0) + m["bytes"]
    for i, m in enumerate(found):
        name = m["name"]
        yield {"name": name, "bytes_at_peak": inside[name], "calls": i % 7,
               "own_peak_bytes": inside[name] + i % 100,
               "phase_end_bytes": [inside[name] // 2, inside[name], MIB * i],
               **({"parent": above[name]} if name in above else {})}


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


def segments(count, blocks):
    """COUNT segments of BLOCKS blocks, every third of them free."""
    kinds = ("parameter", "activation", None, "gradient", "temporary", None)
    for i in range(count):
        size = (1 + i % 9) * MIB
        free = sum(not kinds[k % 6] for k in range(blocks))
        yield {"allocated_bytes": size * (blocks - free),
               "largest_cached_bytes": size if free else 0,
               "cached_pieces": free,
               "address": hex(0x7f0000000000 + i * 64 * MIB),
               "bytes": size * blocks, "stream": hex(i % 2),
               "pool": f"0,{i % 3}",
               "blocks": [{"offset": k * size, "bytes": size,
                           "state": "allocated", "module": f"model.{i}",
                           "category": kinds[k % 6], "operator": "aten::add",
                           "label": NASTY[k % len(NASTY)][:90]}
                          if kinds[k % 6] else
                          {"offset": k * size, "bytes": size, "state": "free"}
                          for k in range(blocks)]}


def things():
    yield {"label": "CUDA context", "bytes": 500 * MIB}
    for name in NASTY:
        yield {"label": name[:90], "bytes": 5 * MIB, "count": 3,
               "category": "activation", "module": "model.blocks.*." + name[:90],
               "operator": "aten::" + name[:90], "dtype": "bfloat16",
               "shape": [16, 1024, 32000], "where": "/job/train.py:31"}


def device(index, layers=12, points=2000, ooms=(), blocks=(60, 12)):
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
        "peak": {"time_ns": 5_000_000_000 + points * 1_000_000, "step": 1,
                 "phase": "backward"},
        "modules_at_peak": found,
        "modules": list(called(found)),
        "phases": list(phases(points)), "module_phases": [0, 3, 8],
        "timeline": list(timeline(points, peak)),
        "timeline_resolution_bytes": 8 * MIB,
        "segments_at_peak": list(segments(*blocks)),
        "things_at_peak": list(things()),
    }


def result(*devices, verdict="fits"):
    return {
        "schema": 1, "version": "0.2.0", "verdict": verdict, "exit_status": 0,
        "command_status": 1, "command": ["python", "train.py", NASTY[0]],
        "gpu": {"name": "sample", "device_name": "A sample card",
                "memory_bytes": 40 << 30},
        "torch": "2.11.0", "seconds": 6.8,
        "ranks": [{"rank": i, "program": "python", "devices": [d]}
                  for i, d in enumerate(devices)],
        "notes": ["a note " + NASTY[1]],
    }


def oom():
    """Two ranks; the second one runs out of memory."""
    refused = {"requested_bytes": 500 * MIB, "free_bytes": 300 * MIB,
               "allocated_bytes": 600 * MIB, "missing_bytes": 200 * MIB,
               "reserved_unallocated_bytes": 60 * MIB, "by": "torch",
               "caught": False, "module": "model.head" + NASTY[0]}
    made = result(device(0, 3, 40), device(1, ooms=[refused]), verdict="oom")
    made["ranks"][1]["devices"][0]["advice"] = [
        {"text": "expandable segments saves 100.00 MiB", "of": "used",
         "saves_bytes": 100 * MIB, "peak_used_bytes": 900 * MIB, "fits": True,
         "command": "memsim replay --what-if checkpoint=model.layers,8bit-"
                    "optimizer,chunked-loss=8,set-to-none,no-autocast-cache "
                    "--alloc-conf expandable_segments:True run",
         "basis": "replayed as torch.utils.checkpoint(use_reentrant=False) "
                  "does" + NASTY[0]}]
    return made


def bare():
    """A run of which only the figures are known."""
    made = device(0)
    for name in ("categories_at_peak", "modules_at_peak", "modules", "phases",
                 "timeline", "segments_at_peak", "things_at_peak", "peak",
                 "timeline_resolution_bytes"):
        del made[name]
    return result(made)


def large():
    """As much of everything as report_html.c lets through, and more points."""
    made = device(0, layers=1400, points=20000, blocks=(1000, 100))
    made["modules_dropped"] = made["modules_at_peak_dropped"] = 990000
    made["phases"] *= 100
    made["left_out"] = {"things_at_peak": 1 << 30}
    return result(made)


def page(template, data):
    """As report_html.c does it."""
    text = json.dumps(data, ensure_ascii=False)
    for c in "<>&\u2028\u2029":
        text = text.replace(c, f"\\u{ord(c):04x}")
    return template.replace("@RESULT@", text)
