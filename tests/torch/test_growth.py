# SPDX-License-Identifier: Apache-2.0
# Programs that keep memory from step to step are found, others are not.
# bench/whole_run/growth does the same with all programs. It starts runs of its
# own, of the programs in MEMSIM_BUILD.
import growth_runs
from growth_runs import END, ends, predict
from harness import equal, main, test

LEAKS = ["losses_with_graph", "inputs_kept", "kept_every_third_step",
         "a_cache_by_concatenation", "outputs_with_graph_in_evaluation",
         "unfrozen_one_by_one"]
INNOCENTS = ["sorted_lengths", "the_last_three_losses", "accumulation",
             "evaluation_every_third_step", "caches_of_generation",
             "unfrozen_once"]


@test
def what_grows_is_found_and_its_end_is_right():
    told = predict(LEAKS)
    end = ends([name for name in LEAKS if name not in growth_runs.NO_END])
    for name in LEAKS:
        assert told[name], f"{name}: nothing was found to grow"
        if name not in end:
            continue
        assert end[name] < END, name
        if told[name]["replayed"]:
            assert abs(told[name]["lasts_most_steps"] - end[name]) <= 1, \
                (name, told[name], end[name])


@test
def what_only_looks_so_is_not_found():
    equal({name: growth for name, growth in predict(INNOCENTS).items()
           if growth}, {})


main()
