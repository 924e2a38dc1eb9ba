/* SPDX-License-Identifier: Apache-2.0
 * CUPTI, as far as a profiler starts, finds no activity, and stops. */
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <time.h>

#include "check.h"

static void callback(void *data, CUpti_CallbackDomain domain,
                     CUpti_CallbackId id, const void *info)
{
    (void)data;
    (void)domain;
    (void)id;
    (void)info;
}

TEST(there_is_one_subscriber_at_a_time)
{
    CUpti_SubscriberHandle a, b;

    CHECK(!cuptiSubscribe(&a, callback, NULL));
    CHECK(cuptiSubscribe(&b, callback, NULL) ==
          CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    CHECK(!cuptiUnsubscribe(a));
    CHECK(!cuptiSubscribe(&b, callback, NULL));
    CHECK(cuptiSubscribe(NULL, callback, NULL) ==
          CUPTI_ERROR_INVALID_PARAMETER);
}

TEST(time_is_that_of_the_wall_clock)
{
    struct timespec wall;
    uint64_t before = 0, after = 0;

    CHECK(!cuptiGetTimestamp(&before));
    clock_gettime(CLOCK_REALTIME, &wall);
    CHECK(!cuptiGetTimestamp(&after));
    uint64_t now = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec;
    CHECK(before <= after);
    CHECK(now + 1000000000 > before && now < after + 1000000000);
    CHECK(cuptiGetTimestamp(NULL) == CUPTI_ERROR_INVALID_PARAMETER);
}

TEST(nothing_was_dropped_and_results_have_names)
{
    const char *text = NULL;
    size_t dropped = 9;
    uint32_t version = 0;

    CHECK(!cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    CHECK_UINT(dropped, 0);
    CHECK(!cuptiGetVersion(&version) && version == CUPTI_API_VERSION);
    CHECK(!cuptiGetResultString(CUPTI_ERROR_NOT_SUPPORTED, &text));
    CHECK_STR(text, "CUPTI_ERROR_NOT_SUPPORTED");
}
