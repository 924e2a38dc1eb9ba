# SPDX-License-Identifier: Apache-2.0
"""Jobs that may take so long and no longer."""
import os
import signal
import subprocess

GRACE_S = 10


def run_limited(command, limit_s, **options):
    """As subprocess.run(COMMAND, timeout=LIMIT_S, **OPTIONS), but where that time
    is over, what COMMAND started is ended, too: subprocess.run ends `memsim run`
    alone, and the job's processes go on."""
    with subprocess.Popen(command, start_new_session=True, **options) as job:
        try:
            out, err = job.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            job.terminate()  # memsim passes it on, to what is in other groups
            try:
                job.communicate(timeout=GRACE_S)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(job.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            raise
    return subprocess.CompletedProcess(command, job.returncode, out, err)
