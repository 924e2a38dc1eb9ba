# SPDX-License-Identifier: Apache-2.0
"""The command line, as cmd_search.c hands it over:
MEMSIM SPACE OPTION... -- RUN-OPTION... -- COMMAND..."""
import argparse
import json
import os
import signal
import subprocess
import sys

from . import SearchError
from . import live, output, page, strategies, submit, trials
from .command import Job
from .objective import GOALS, Objective
from .price import Prices
from .prune import Pruner
from .search import Search, check_lacking
from .space import ALLOC_CONF, Space
from .store import Store
from .toml_file import TomlFile

FAILED = 125  # as of memsim run
NO_ANSWER = 120  # as of fit-batch
PATIENCE = 20
TRIALS = 300  # unless all points are tried


def parse(words):
    """(options, RUN-OPTIONs, COMMAND)."""
    first = words.index("--")
    second = words.index("--", first + 1)
    parser = argparse.ArgumentParser(prog="memsim search", allow_abbrev=False)
    for name in ("memsim", "space"):
        parser.add_argument(name)
    for name in ("output", "json", "csv", "html", "goal", "price",
                 "price-kind", "strategy", "storage", "names", "submit"):
        parser.add_argument(f"--{name}")
    for name in ("jobs", "trials", "patience", "seed", "trial-timeout"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("quiet", "no-prune", "retry-failed"):
        parser.add_argument(f"--{name}", action="store_true")
    return (parser.parse_args(words[:first]), words[first + 1:second],
            words[second + 1:])


def ask_memsim(memsim, *words):
    """What memsim prints; None: it failed."""
    done = subprocess.run([memsim, *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    return done.stdout if done.returncode == 0 else None


def gpu_name(memsim, name, place):
    """The catalogue's name of the GPU NAME."""
    told = ask_memsim(memsim, "gpus", "--json", name)
    try:
        return json.loads(told)["gpu"]["name"]
    except (TypeError, ValueError, KeyError):
        raise SearchError(f"{place}: '{name}' is no GPU; `memsim gpus' lists "
                          "them") from None


def given(run_options, name):
    """The value of --NAME among RUN_OPTIONS, or None."""
    found = None
    for word in run_options:
        if word.startswith(f"--{name}="):
            found = word.partition("=")[2]
    return found


def make_objective(space, options, run_options):
    prices = None
    if options.price:
        prices = Prices(options.price, options.price_kind,
                        lambda name: gpu_name(options.memsim, name,
                                              options.price))
    elif options.price_kind:
        raise SearchError("--price-kind: without --price FILE it says nothing")
    return Objective(space, options.goal, prices,
                     int(given(run_options, "nnodes") or 1),
                     given(run_options, "steps") is not None)


def check_options(options, space, run_options):
    """What one option says of another."""
    if options.goal and options.goal not in GOALS:
        raise SearchError(f"--goal: '{options.goal}' is not one of " +
                          ", ".join(GOALS))
    for name in space.names:
        if name.kind == "memsim" and given(run_options, name.name):
            raise SearchError(
                f"{space.file.place('memsim', name.name)}: '{name.name}' is "
                f"given as --{name.name} too; drop one of them")


def check_outputs(options):
    """What could not be written after a long search is said before it."""
    seen = {os.path.realpath(options.space): "the space"}
    for name in ("json", "csv", "html"):
        path = getattr(options, name)
        if not path:
            continue
        where = path if path == "-" else os.path.realpath(path)
        if where in seen:
            raise SearchError(f"--{name}: {path} is {seen[where]} too; give "
                              "another file")
        seen[where] = f"--{name}"
        if path == "-":
            continue
        if os.path.isdir(where):
            raise SearchError(f"--{name}: {path} is a directory; give a file")
        parent = os.path.dirname(where)
        if not os.path.isdir(parent):
            raise SearchError(f"--{name}: {parent}: no such directory")
        if not os.access(where if os.path.exists(where) else parent, os.W_OK):
            raise SearchError(f"--{name}: {path}: it cannot be written; give "
                              "another file")


def directory_of(options):
    """Where the trials are kept."""
    if options.output:
        return options.output
    stem = os.path.basename(options.space)
    return os.path.splitext(stem)[0] + ".search"


class Setting:
    """All that a search is made of."""

    def __init__(self, options, run_options, command):
        self.options = options
        known = (options.names or "").split(",") + [ALLOC_CONF]
        self.space = Space(TomlFile(options.space), known)
        check_options(options, self.space, run_options)
        check_outputs(options)
        self.objective = make_objective(self.space, options, run_options)
        if self.objective.host_memory:
            run_options = [*run_options,
                           f"--host-memory={self.objective.host_memory}"]
        told = ask_memsim(options.memsim, "--version") or ""
        self.version = told.strip().removeprefix("memsim ")
        # Builds of one release share what they found; the result says so.
        self.job = Job(self.space, options.memsim, run_options, command,
                       self.version.partition(" ")[0])
        self.job.build = self.version
        points = self.space.points()
        self.pruner = Pruner(self.space, self.objective, not options.no_prune)
        self.points = self.pruner.order(points)
        self.total = None if self.space.spans else len(points)
        self.strategy = strategies.choose(options.strategy, self.space, points)

    def limit(self):
        if self.options.trials:
            return self.options.trials
        return None if self.strategy == "exhaustive" else TRIALS

    def patience(self):
        if self.options.patience is not None:
            return self.options.patience
        return 0 if self.strategy == "exhaustive" else PATIENCE

    def introduce(self, store):
        """Lines before the first trial."""
        directions = self.pruner.directions
        told = [f"{output.points_words(self.total)}, {self.strategy}, "
                f"for the best {GOALS[self.objective.goal]}; trials are kept in "
                f"{output.clean(store.directory)}"]
        if self.pruner.is_on and self.pruner.assumed and directions:
            told.append("memory is taken to grow with " + ", ".join(
                f"{'less ' if sign < 0 else ''}{name}"
                for name, sign in directions.items()) +
                ", by their names; [memory] in the file says otherwise")
        return told

    def search(self, store, show):
        options = self.options
        strategy = strategies.make(self.strategy, self.space, self.points,
                                   store.directory,
                                   options.storage or "journal",
                                   options.seed or 0)
        jobs = options.jobs or 1
        limit_s = options.trial_timeout
        runner = submit.Submitted(self.job, store, jobs, options.submit,
                                  limit_s) if options.submit else \
            trials.Local(self.job, store, jobs, limit_s)
        return Search(self.objective, strategy, self.pruner, runner, store,
                      show, self.limit(), self.patience())


def run_search(search, show):
    """Runs it. Returns the signal that ended it, or 0."""
    ended = 0
    try:
        search.run()
    except trials.Interrupted as signalled:
        ended = signalled.args[0]
        trials.ignore_signals()
    finally:
        search.runner.stop()
        show.end()
    return ended


def tell(setting, search):
    """Prints the result and writes the files."""
    options, total = setting.options, setting.total
    to_stdout = "-" in (options.json, options.csv)
    if not options.quiet:
        out = sys.stderr if to_stdout else sys.stdout
        out.write("".join(f"{line}\n" for line in output.text(search, total)))
        out.flush()
    told = output.document(search, total, setting.version, setting.strategy)
    for path, make in ((options.json, output.json_text),
                       (options.csv, output.csv_text),
                       (options.html, page.text)):
        if path:
            output.write(path, make(told))


def start(words):
    options, run_options, command = parse(words)
    setting = Setting(options, run_options, command)
    store = Store(directory_of(options), options.retry_failed)
    try:
        show = live.make(sys.stderr, setting.total, options.quiet)
        if not options.quiet:
            for line in setting.introduce(store):
                print(f"memsim: search: {line}", file=sys.stderr)
        search = setting.search(store, show)
        trials.catch_signals()
        signalled = run_search(search, show)
        tell(setting, search)
    finally:
        store.close()
    if signalled:
        print("memsim: note: interrupted; the same command goes on from here",
              file=sys.stderr)
        return 128 + signalled
    check_lacking(search)
    return 0 if search.answers() else NO_ANSWER


def main(words):
    try:
        return start(words)
    except SearchError as error:
        print(f"memsim: search: {output.clean_lines(str(error))}",
              file=sys.stderr)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except trials.Interrupted as signalled:
        return 128 + signalled.args[0]
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
