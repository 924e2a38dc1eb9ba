/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/input_run.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "common/base/json_text.h"
#include "memsim/study/input_kind.h"
#include "memsim/study/run_study.h"

static int open_directory(struct input_run *run, struct err *err)
{
    if (rundir_open(&run->dir, run->name, err))
        return -1;
    run->file.command = rundir_command(&run->dir, err);
    if (!run->file.command) {
        rundir_close(&run->dir);
        return -1;
    }
    study_result(&run->file.result, &run->dir, run->file.command);
    return 0;
}

static int open_file(struct input_run *run, struct err *err)
{
    size_t length;
    char *text = json_text_read(run->name, &length, err);

    if (!text)
        return -1;
    int rc = result_read(text, length, run->name, &run->file, err);
    free(text);
    return rc;
}

int input_run_open(struct input_run *run, struct err *err)
{
    struct stat st;

    if (input_kind_check(run->name, INPUT_RUN | INPUT_REPORT, err))
        return -1;
    run->is_dir = !stat(run->name, &st) && S_ISDIR(st.st_mode);
    return run->is_dir ? open_directory(run, err) : open_file(run, err);
}

void input_run_close(struct input_run *run)
{
    if (!run->is_dir) {
        result_file_fini(&run->file);
        return;
    }
    result_fini(&run->file.result);
    free(run->file.command);
    rundir_close(&run->dir);
}
