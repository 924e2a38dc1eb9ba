/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/cmd.h"
#include "check.h"

#include <cjson/cJSON.h>

/* Runs `memsim gpus ARGUMENTS...`; what it printed goes to OUT. */
static int run(const char *a, const char *b, char *out, size_t size)
{
    char words[3][96] = {"gpus", "", ""};
    char *argv[4] = {words[0], words[1], words[2], NULL};
    FILE *file = tmpfile();
    int argc = 1 + (a != NULL) + (b != NULL);

    snprintf(words[1], sizeof words[1], "%s", a ? a : "");
    snprintf(words[2], sizeof words[2], "%s", b ? b : "");
    argv[argc] = NULL;
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    int status = cmd_gpus(argc, argv);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    out[fread(out, 1, size - 1, file)] = '\0';
    fclose(file);
    return status;
}

static char out[1 << 20];

static void check_width(const char *text)
{
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        if (length > 80 || (length && line[length - 1] == ' '))
            CHECK_FAIL("'%.*s' has %zu columns or ends in a space", (int)length,
                       line, length);
        line += length + (line[length] == '\n');
    }
}

TEST(lists_all_in_eighty_columns)
{
    CHECK_UINT((unsigned)run(NULL, NULL, out, sizeof out), CMD_OK);
    check_width(out);
    CHECK(strstr(out, "\nh100-sxm-80gb                 79.18   132         9.0    3350"
                      "        989.4  own\n"));
    CHECK(strstr(out, "\na10 "));
    CHECK(strstr(strstr(out, "\na10 "), "  own\n") >
          strchr(strstr(out, "\na10 ") + 1, '\n'));
    CHECK(strstr(out, "\nt4                            14.56    40         7.5     320"
                      "            -  own\n"));
}

TEST(shows_one_with_its_sources)
{
    CHECK_UINT((unsigned)run("h100", NULL, out, sizeof out), CMD_OK);
    check_width(out);
    CHECK(strstr(out, "\nmemory_bytes                  85017755648           "
                      "           [2]\n"));
    CHECK(strstr(out, "\nwarp_size                     32                    "
                      "           derived\n"));
    CHECK(strstr(out, "\nSources:\n  1  nvidia-smi"));
    CHECK(strstr(out, "\n  2  deviceQuery"));
    CHECK(strstr(out, "\n  cudnn_bytes          a handle: 0 to 9 MiB"));
    CHECK(!strstr(out, "\n  context_bytes ")); /* was measured */
}

TEST(prints_json)
{
    CHECK_UINT((unsigned)run("--json", NULL, out, sizeof out), CMD_OK);
    cJSON *root = cJSON_Parse(out);
    CHECK(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "schema")) == 1);
    CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(root, "gpus")) >= 30);
    cJSON_Delete(root);

    CHECK_UINT((unsigned)run("--json", "h200", out, sizeof out), CMD_OK);
    root = cJSON_Parse(out);
    const cJSON *gpu = cJSON_GetObjectItem(root, "gpu");
    CHECK(cJSON_GetNumberValue(cJSON_GetObjectItem(gpu, "memory_bytes")) ==
          150109880320.0);
    CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(gpu, "sources")) > 3);
    cJSON_Delete(root);
}

TEST(tells_usage_errors_from_failures)
{
    if (!freopen("/dev/null", "w", stderr)) /* other tests read the words */
        CHECK_FAIL("freopen: %m");
    CHECK_UINT((unsigned)run("h100", "h200", out, sizeof out), CMD_USAGE);
    CHECK_UINT((unsigned)run("--jsn", NULL, out, sizeof out), CMD_USAGE);
    CHECK_UINT((unsigned)run("h1000", NULL, out, sizeof out), CMD_FAILED);
    CHECK_STR(out, "");
}
