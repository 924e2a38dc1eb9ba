# SPDX-License-Identifier: Apache-2.0
"""The points that no other one beats in time, cost and memory at once."""


def axes_of(trial):
    """What is compared, smaller is better; None where it is not known."""
    return (trial.time, trial.cost, trial.memory)


def beats(a, b):
    """Whether A is nowhere worse than B, and somewhere better."""
    pairs = [(x, y) for x, y in zip(axes_of(a), axes_of(b))
             if x is not None and y is not None]
    return bool(pairs) and all(x <= y for x, y in pairs) and \
        any(x < y for x, y in pairs)


def pareto(trials):
    """Of TRIALS that are answers, those that none beats, by time."""
    answers = [t for t in trials if t.value is not None]
    front = [t for t in answers if not any(beats(o, t) for o in answers)]
    return sorted(front, key=lambda t: [a if a is not None else 0
                                        for a in axes_of(t)])
