# SPDX-License-Identifier: Apache-2.0
"""memsim admit: predicts a job, and submits it with sbatch unless it will not
fit. Its words: OPTION... -- RUN-OPTION... -- SBATCH-WORD..., as cmd_admit.c hands
them over."""
import argparse
import os
import sys

from search.output import clean, clean_lines, size_words, time_words

from . import AdmitError, request, slurm
from .database import Database, usual_path
from .predict import Prediction, Predictor

FAILED = 125
REFUSED = 120


def parse(words):
    """(options, RUN-OPTIONs, sbatch's words)."""
    first = words.index("--")
    second = words.index("--", first + 1)
    parser = argparse.ArgumentParser(prog="memsim admit", allow_abbrev=False)
    for name in ("policy", "database", "in-job", "filter", "submitted"):
        parser.add_argument(f"--{name}")
    for name in ("stop-after", "timeout"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--dry-run", action="store_true")
    return (parser.parse_args(words[:first]), words[first + 1:second],
            words[second + 1:])


def say(text):
    print(f"memsim: {clean_lines(text)}", file=sys.stderr, flush=True)


class Admission:
    """MEMSIM with OPTIONS."""

    def __init__(self, memsim, options, run_options):
        self.options, self.memsim = options, memsim
        self.predictor = Predictor(memsim, run_options,
                                   options.stop_after or 3,
                                   options.timeout or 600, options.in_job)
        self.asks_anyway = any(word.startswith(("--gpu=", "--gpus="))
                               for word in run_options)

    def predict(self, job):
        """The Prediction of the Request JOB; None: it asks for no GPU."""
        if not job.gpus and not self.asks_anyway:
            say("the job asks for no GPU, and is not predicted (--gpus N "
                "does)")
            return None
        try:
            found = self.predictor.predict(job)
        except AdmitError as error:
            found = Prediction("unknown", str(error))
        say(told_words(found))
        return found

    def is_refused(self, prediction):
        return prediction.is_refused and self.options.policy != "annotate"

    def record(self, job, prediction):
        """Returns (the database, the prediction's number in it). A job is
        submitted also where that fails, as it is without memsim."""
        version = (slurm.ask([self.memsim, "--version"]) or "").strip()
        try:
            database = Database(self.options.database or usual_path())
            return database, database.add_prediction(
                job, prediction, self.is_refused(prediction), version)
        except AdmitError as error:
            say(f"not recorded: {error}")
            return None, None


def told_words(prediction):
    """The prediction in one line."""
    told = prediction.figures
    line = f"predicted: {prediction.verdict}"
    if prediction.why:
        line += f" ({clean(prediction.why)})"
    if told.get("peak_used_bytes") is not None:
        line += (f", {size_words(told['peak_used_bytes'])} of "
                 f"{size_words(told['capacity_bytes'])} "
                 f"({clean(told['gpu'])})")
    if told.get("step_ns"):
        line += f", a step of {time_words(told['step_ns'])}"
    return line + f"; it took {prediction.seconds:.0f} s"


def user_comment(job):
    return job.option("comment")


def whole_comment(job, prediction):
    """The user's comment, and what memsim says."""
    own = user_comment(job)
    return "; ".join(filter(None, [own, prediction.comment()]))


def submit(admission, words):
    """Predicts and submits the job of sbatch's WORDS."""
    job, from_stdin = request.from_words(words, sys.stdin)
    script = job.text if from_stdin else None
    prediction = admission.predict(job)
    refused = prediction is not None and admission.is_refused(prediction)
    if admission.options.dry_run:
        return REFUSED if refused else 0
    database = number = None
    if prediction is not None:
        database, number = admission.record(job, prediction)
    if refused:
        say("not submitted (--policy annotate submits it)")
        return REFUSED
    comment = prediction and whole_comment(job, prediction)
    status, made = slurm.submit(words, comment, script)
    if made and number:
        database.set_job(number, made)
    return status


def answer_filter(admission):
    """For cli_filter.lua: lines with submit or refuse, the prediction's number
    and the comment."""
    job = request.from_filter(admission.options.filter)
    if job is None:
        say("the script came from standard input: not predicted; `memsim "
            "admit' in place of sbatch does")
        return 0
    prediction = admission.predict(job)
    if prediction is None:
        return 0
    _, number = admission.record(job, prediction)
    refused = admission.is_refused(prediction)
    print("refuse" if refused else "submit")
    print(number or "")
    print(clean(whole_comment(job, prediction)))
    return 0


def note_submitted(options):
    """For cli_filter.lua: NUMBER=JOB."""
    number, equals, job = options.submitted.partition("=")
    if not equals or not number.isdecimal() or not job.isdecimal():
        raise AdmitError(f"--submitted: '{options.submitted}' is not NUMBER=JOB")
    Database(options.database or usual_path()).set_job(int(number), job)
    return 0


def start(memsim, words):
    options, run_options, rest = parse(words)
    if options.submitted:
        return note_submitted(options)
    admission = Admission(memsim, options, run_options)
    if options.filter:
        return answer_filter(admission)
    if not rest and sys.stdin.isatty():
        raise AdmitError("give a batch script, as to sbatch")
    return submit(admission, rest)


def main(memsim, words):
    try:
        return start(memsim, words)
    except AdmitError as error:
        say(f"admit: {error}")
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
