/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/layer_lists.h"

#include <stdlib.h>

#include "check.h"

#define CHUNK 65536

static void check_launch(const struct list_launch *l, uint64_t elements,
                         uint32_t tensors, uint32_t blocks)
{
    CHECK_UINT(l->elements, elements);
    CHECK_UINT(l->tensors, tensors);
    CHECK_UINT(l->blocks, blocks);
}

TEST(a_launch_takes_as_many_tensors_as_it_has_room_for)
{
    uint64_t sizes[70];
    struct list_launch *all;
    struct list_room room;

    for (size_t i = 0; i < 70; i++)
        sizes[i] = 10 + i;
    CHECK(list_room_get(4, 0, &room));
    CHECK_UINT(list_cut(sizes, 70, &room, &all), 2); /* 36 and 34 */
    check_launch(&all[0], 36 * 10 + 35 * 36 / 2, 36, 36);
    check_launch(&all[1], 34 * 46 + 33 * 34 / 2, 34, 34);
    free(all);
    CHECK(list_room_get(4, 2, &room));
    CHECK_UINT(list_cut(sizes, 70, &room, &all), 1);
    free(all);
    CHECK_UINT(list_cut(sizes, 0, &room, &all), 0);
    free(all);
}

TEST(a_tensor_goes_on_in_the_next_launch_where_blocks_end)
{
    const uint64_t sizes[] = {5, 321 * (uint64_t)CHUNK + 7, 9};
    const struct list_room room = {110, 320};
    struct list_launch *all;

    CHECK_UINT(list_cut(sizes, 3, &room, &all), 2);
    check_launch(&all[0], 5 + 319 * (uint64_t)CHUNK, 2, 320);
    check_launch(&all[1], 2 * (uint64_t)CHUNK + 7 + 9, 2, 4);
    free(all);
}

TEST(the_structure_follows_from_the_kernel_and_the_version)
{
    CHECK_UINT(list_variant("f<TensorListMetadata<1>>", "2.11.0+cu130"),
               LIST_PLAIN);
    CHECK_UINT(list_variant("f<TensorListScalarListMetadata<float, 1>>",
                            "2.5.1+cu124"),
               LIST_SCALARS);
    CHECK_UINT(list_variant("f<TensorListMetadata<1>>", "2.12.0+cu130"),
               LIST_LARGE);
    CHECK_UINT(list_variant("f<TensorListMetadata<1>>", "2.15.0+cu126"),
               LIST_PLAIN);
    CHECK_UINT(list_variant("", ""), LIST_PLAIN);
}

TEST(there_are_rooms_for_one_to_five_lists)
{
    struct list_room room;

    CHECK(!list_room_get(0, 0, &room));
    CHECK(!list_room_get(6, 0, &room));
    CHECK(list_room_get(5, 3, &room));
    CHECK(!list_room_get(5, 4, &room));
}
