/* SPDX-License-Identifier: Apache-2.0
 * Every name in memsim's JSON. To add a member, add a row here and write it:
 * the JSON Schema and man/memsim-json.5 follow, and any test that writes a
 * member without a row fails. Types are described in schema.h. */
#include "memsim/report/schema.h"

#include <stddef.h>

/* Every row ends with a comma. */
#define FIELDS(...)                                                            \
    (const struct schema_field[])                                              \
    {                                                                          \
        __VA_ARGS__ {0}                                                        \
    }
#define VERDICT "fits|oom|over-limit|failed|unknown"

/* clang-format off */
const char *const schema_documents[] = {
    "report", "fit_batch", "diff", "gpus", "gpu", "clusters", "cluster", NULL,
};

const struct schema_object schema_objects[] = {

/* --- run, report, replay -------------------------------------------------- */

{"report", "what run, report and replay write with --json", NULL, FIELDS(
    {"schema", "uint", "1"},
    {"verdict", VERDICT, "what came of it; unknown: a recording that is not of the whole job"},
    {"exit_status", "int", "memsim's own"},
    {"command_status", "int", "the command's own"},
    {"needs_bytes", "optional uint", "of an unknown verdict: what the recorded part needs of a card"},
    {"why", "optional text", "of an unknown verdict: why it is unknown"},
    {"command", "list of text", "the command, word by word"},
    {"gpu", "card", "the card that it ran on"},
    {"fail_above_percent", "optional number", "the limit of --fail-above, where given"},
    {"torch", "optional text", "PyTorch's version, where seen"},
    {"trace", "optional text", "the run's directory, where it was kept"},
    {"seconds", "number", "how long the command took on this machine"},
    {"ranks", "list of rank", "the processes that used a card, by rank"},
    {"collectives", "optional collectives", "with --cluster: what NCCL's collectives would take"},
    {"notes", "list of text", "what else is worth knowing"},
    {"guesses", "list of guess", "each place where the program read a value that memsim does not compute"},
    {"guesses_dropped", "optional uint", "how many more such places there were"},
    {"files", "optional list of file", "checkpoints and other files of tensors that the command wrote"},
    {"replay", "optional list of replay", "of replay: each recording"},
)},
{"file", "a file of tensors that the command wrote", NULL, FIELDS(
    {"path", "text", "where the command wrote it; absolute"},
    {"kept", "bool", "it is as it was before the run, and the run has a copy of its own"},
)},
{"card", "a card of the catalogue", NULL, FIELDS(
    {"name", "text", "in the catalogue"},
    {"device_name", "text", "as the driver calls it"},
    {"memory_bytes", "uint", "all that CUDA has"},
)},
{"rank", "a process", NULL, FIELDS(
    {"rank", "uint", "its rank"},
    {"program", "text", "its file's name"},
    {"devices", "list of device", "the cards that it used, by index"},
)},
{"peaks", "the highest values during a run", NULL, FIELDS(
    {"peak_allocated_bytes", "uint", "torch.cuda.max_memory_allocated()"},
    {"peak_reserved_bytes", "uint", "torch.cuda.max_memory_reserved()"},
    {"peak_used_bytes", "uint", "all that the card would show as used"},
)},
{"device", "a card of a process", "peaks", FIELDS(
    {"index", "uint", "the card's"},
    {"capacity_bytes", "uint", "its memory"},
    {"headroom_bytes", "uint", "what was free at the peak of used"},
    {"context_bytes", "uint", "of used, the CUDA context"},
    {"libraries_bytes", "uint", "of used, the CUDA libraries' own memory"},
    {"ooms", "list of oom", "requests that the card could not meet"},
    {"things_at_peak", "optional list of thing", "blocks at the peak of allocated, by first use and size, largest first"},
    {"peak", "optional peak", "when the most was allocated; this and what follows where modules are recorded"},
    {"categories_at_peak", "optional map of uint", "bytes by category"},
    {"modules_at_peak", "optional list of owner", "what each module itself held, largest first"},
    {"modules_at_peak_dropped", "optional uint", "how many more there were"},
    {"modules", "optional list of module", "every module, the highest own peak first"},
    {"modules_dropped", "optional uint", "how many more there were"},
    {"phases", "optional list of phase", "forward, backward and so on, in order"},
    {"phases_dropped", "optional uint", "how many are left out in the middle"},
    {"module_phases", "optional list of uint", "the places in phases that phase_end_bytes are of"},
    {"timeline", "optional list of point", "memory over time"},
    {"timeline_resolution_bytes", "optional uint", "changes smaller than this may be missing in it"},
    {"segments_at_peak", "optional list of segment", "the allocator's segments at the peak"},
    {"advice", "optional list of advice", "with --advice: what would take less memory, the largest saving first"},
    {"left_out", "optional map of uint", "in the page of --html: lists too long for it, and their length"},
)},
{"oom", "a request that the card could not meet", NULL, FIELDS(
    {"requested_bytes", "uint", "its size"},
    {"free_bytes", "uint", "what was free on the card"},
    {"allocated_bytes", "uint", "what was allocated"},
    {"reserved_unallocated_bytes", "uint", "what PyTorch had reserved and not allocated"},
    {"missing_bytes", "uint", "how much more would have met it; 0: memory was not what it lacked"},
    {"by", "torch|cudaMalloc", "who asked"},
    {"caught", "bool", "the program went on"},
    {"module", "optional text", "the module at work then"},
)},
{"thing", "blocks of one kind", NULL, FIELDS(
    {"label", "text", "the first work that used them, and their size"},
    {"bytes", "uint", "of all of them"},
    {"count", "optional uint", "how many blocks"},
)},
{"guess", "where the program read a value that memsim does not compute", NULL, FIELDS(
    {"operator", "text", "PyTorch's operator"},
    {"module", "text", "the module; empty: not known"},
    {"what", "text", "what was read, and what it got"},
    {"times", "uint", "how often"},
    {"elements", "uint", "of all times together"},
    {"chosen", "uint", "of these, how many the policy chose"},
)},
{"advice", "what would take less memory", NULL, FIELDS(
    {"text", "text", "for people"},
    {"saves_bytes", "uint", "of the peak in `of'"},
    {"of", "optional allocated|reserved|used", "which peak; missing: it saves nothing, text says it all"},
    {"fits", "bool", "with it the job fits"},
    {"peak_allocated_bytes", "optional uint", "with it"},
    {"peak_reserved_bytes", "optional uint", "with it"},
    {"peak_used_bytes", "optional uint", "with it"},
    {"command", "text", "shows it"},
    {"basis", "text", "what was replayed, and assumed"},
)},

/* --- attribution ---------------------------------------------------------- */

{"peak", "when the most was allocated", NULL, FIELDS(
    {"time_ns", "uint", "since the trace's first record, of the host"},
    {"step", "uint", "the training step, from 0"},
    {"phase", "text", "forward, backward, ..."},
)},
{"owner", "what a module itself held at the peak", NULL, FIELDS(
    {"name", "text", "its path; empty: no module was at work"},
    {"bytes", "uint", "of all categories"},
    {"categories", "map of uint", "bytes by category"},
)},
{"module", "a module of the program's models", NULL, FIELDS(
    {"name", "text", "its path"},
    {"parent", "optional text", "the name of the one above"},
    {"bytes_at_peak", "uint", "at the card's peak, parts included"},
    {"self_bytes_at_peak", "uint", "without its parts"},
    {"own_peak_bytes", "uint", "the most that it ever held, parts included"},
    {"calls", "uint", "how often it was called"},
    {"phase_end_bytes", "optional list of uint", "what it held when the phases of module_phases ended"},
)},
{"phase", "a part of a training step", NULL, FIELDS(
    {"step", "uint", "the step, from 0"},
    {"phase", "text", "forward, backward, ..."},
    {"start_ns", "uint", "since the trace's first record, of the host"},
    {"end_ns", "uint", "the same"},
    {"peak_bytes", "uint", "the most that was allocated in it"},
    {"end_bytes", "uint", "what was allocated when it ended"},
    {"end_categories", "map of uint", "the same, by category"},
)},
{"point", "memory at one moment", NULL, FIELDS(
    {"time_ns", "uint", "since the trace's first record, of the host"},
    {"allocated", "uint", "bytes"},
    {"reserved", "uint", "bytes"},
    {"categories", "map of uint", "allocated bytes by category"},
)},
{"segment", "a segment of PyTorch's allocator", NULL, FIELDS(
    {"address", "hex", "its first byte"},
    {"bytes", "uint", "its size"},
    {"stream", "hex", "the stream's handle"},
    {"pool", "text", "the private pool, as two numbers"},
    {"allocated_bytes", "uint", "of its blocks"},
    {"largest_cached_bytes", "uint", "the largest free block"},
    {"cached_pieces", "uint", "how many free blocks"},
    {"blocks", "list of block", "by address"},
    {"blocks_dropped", "optional uint", "how many more there were"},
)},
{"block", "a block of a segment", NULL, FIELDS(
    {"offset", "uint", "in the segment"},
    {"bytes", "uint", "its size"},
    {"state", "allocated|free", "at the peak"},
    {"module", "optional text", "of an allocated one: whose it is"},
    {"category", "optional text", "of an allocated one"},
    {"label", "optional text", "of an allocated one: the first work that used it"},
    {"operator", "optional text", "the operator that allocated it"},
)},

/* --- collectives ---------------------------------------------------------- */

{"collectives", "what NCCL's collectives would take on a cluster", NULL, FIELDS(
    {"cluster", "text", "its name"},
    {"measured", "bool", "false: only its data sheet is known"},
    {"gpus_per_node", "uint", "as used here"},
    {"world", "uint", "how many ranks"},
    {"ranks", "list of collectives_rank", "each process"},
)},
{"collectives_sum", "a number of calls", NULL, FIELDS(
    {"calls", "uint", "how many"},
    {"bytes", "uint", "as nccl-tests counts them"},
    {"time_us", "number", "the sum of each call alone"},
)},
{"collectives_rank", "a process's collectives", "collectives_sum", FIELDS(
    {"rank", "uint", "its rank"},
    {"process", "uint", "the NNNN of its trace"},
    {"before_steps", "collectives_sum", "before the first step"},
    {"step", "optional collectives_step", "the step of the median sum"},
    {"steps_time_us", "list of number", "of each whole step"},
    {"kinds", "list of collectives_kind", "by collective and communicator"},
)},
{"collectives_step", "a step's collectives", "collectives_sum", FIELDS(
    {"index", "uint", "the step, from 0"},
)},
{"collectives_kind", "one collective on one kind of communicator", "collectives_sum", FIELDS(
    {"collective", "text", "as nccl-tests calls it"},
    {"ranks", "uint", "of the communicator"},
    {"nodes", "uint", "that these are on"},
    {"gpus_per_node", "uint", "of these"},
    {"members_assumed", "bool", "which ranks they are is not known"},
    {"step", "optional collectives_sum", "of the step"},
    {"sizes", "list of collectives_size", "by size"},
    {"error_median", "optional number", "the fit's on data that it had not seen; the largest of the calls'"},
    {"warnings", "list of collectives_warning", "where the fit had to go beyond what was measured"},
)},
{"collectives_size", "the calls of one size", NULL, FIELDS(
    {"bytes", "uint", "the size"},
    {"calls", "uint", "of the run"},
    {"call_us", "number", "the time of each"},
)},
{"collectives_warning", "why a time is worth less", NULL, FIELDS(
    {"text", "text", "for people"},
    {"calls", "uint", "of how many calls"},
)},

/* --- replay --------------------------------------------------------------- */

{"replay", "a recording, played again", NULL, FIELDS(
    {"recording", "text", "its file"},
    {"rank", "uint", "of its process"},
    {"torch", "text", "whose rules were followed"},
    {"exact", "bool", "played as it was, every block came out at its address"},
    {"blocks_checked", "uint", "how many"},
    {"difference", "optional text", "the first one, where it was not exact"},
    {"configurations", "list of replay_row", "each setting of the allocator"},
    {"advice", "optional text", "the setting that needs least"},
    {"smallest_memory_bytes", "optional uint", "with --sweep"},
    {"smallest_is_least", "optional bool", "the job may need more, for the recording is not of the whole job"},
    {"fragmentation", "replay_look", "the allocator at one moment"},
    {"left_out", "optional map of uint", "in the page of --html: lists too long for it, and their length"},
)},
{"replay_row", "a setting of the allocator", NULL, FIELDS(
    {"alloc_conf", "text", "as PYTORCH_CUDA_ALLOC_CONF has it"},
    {"advised", "bool", "memsim added it"},
    {"verdict", "fits|oom|unknown", "what came of it"},
    {"devices", "list of replay_device", "each card"},
)},
{"replay_device", "a card of a replay", "peaks", FIELDS(
    {"index", "uint", "the card's"},
    {"ooms", "uint", "requests that it could not meet"},
    {"num_alloc_retries", "uint", "torch.cuda.memory_stats(): calls of cudaMalloc that failed and were tried again"},
    {"num_device_alloc", "uint", "the same: calls of cudaMalloc"},
    {"num_device_free", "uint", "the same: calls of cudaFree"},
)},
{"replay_look", "the allocator at one moment", NULL, FIELDS(
    {"at", "oom|peak", "which moment"},
    {"device", "uint", "the card's index"},
    {"requested_bytes", "optional uint", "of the request that failed"},
    {"unusable", "optional map of replay_reason", "why what is cached could not serve it"},
    {"pools", "list of replay_pool", "its pools"},
    {"segments", "list of replay_segment", "its segments"},
)},
{"replay_reason", "cached memory that cannot serve a request", NULL, FIELDS(
    {"bytes", "uint", "of all of it"},
    {"largest_bytes", "uint", "of one block"},
    {"blocks", "uint", "how many"},
)},
{"replay_place", "where memory belongs", NULL, FIELDS(
    {"pool", "list of uint", "the private pool, as two numbers"},
    {"kind", "small|large", "the pool of small or of large blocks"},
    {"stream", "hex", "the stream's handle"},
)},
{"replay_pool", "a pool of one stream", "replay_place", FIELDS(
    {"allocated_bytes", "uint", "in use"},
    {"waiting_bytes", "uint", "freed, and waiting for another stream's work"},
    {"cached_bytes", "uint", "free"},
    {"largest_cached_bytes", "uint", "the largest free block"},
    {"segments", "uint", "how many"},
    {"blocks", "uint", "how many"},
)},
{"replay_segment", "a segment of a replay", "replay_place", FIELDS(
    {"address", "hex", "its first byte"},
    {"bytes", "uint", "its size"},
    {"expandable", "bool", "it grows"},
    {"allocated_bytes", "uint", "in use"},
    {"largest_cached_bytes", "uint", "the largest free block"},
    {"map", "text", "a drawing, a character for an equal part"},
)},

/* --- fit-batch ------------------------------------------------------------ */

{"fit_batch", "what fit-batch writes with --json", NULL, FIELDS(
    {"schema", "uint", "1"},
    {"verdict", "fits|oom|failed|interrupted", "what came of the search"},
    {"exit_status", "int", "memsim's own"},
    {"command", "list of text", "the command, with its {}"},
    {"gpu", "card", "the card that it ran on"},
    {"largest_batch", "nullable uint", "that fits"},
    {"smallest_too_large", "nullable uint", "that does not"},
    {"from", "uint", "as --from"},
    {"to", "uint", "as --to"},
    {"multiple_of", "uint", "as --multiple-of"},
    {"uneven", "bool", "a larger batch took less memory than a smaller one"},
    {"tries", "list of batch_try", "each run, in order"},
)},
{"batch_try", "a run of fit-batch; the peaks are those of its fullest card", "peaks", FIELDS(
    {"batch", "uint", "the batch"},
    {"verdict", "fits|oom|caught-oom|over-limit|failed", "what came of it"},
    {"command_status", "int", "the command's own"},
    {"seconds", "number", "how long it took"},
    {"cached", "bool", "it was known from before"},
)},

/* --- diff ----------------------------------------------------------------- */

{"diff", "what diff writes with --json", NULL, FIELDS(
    {"diff_schema", "uint", "1"},
    {"words", "text", "the first line of the summary"},
    {"fail_above_bytes", "optional uint", "the limit, where given so"},
    {"fail_above_percent", "optional number", "the limit, where given so"},
    {"past_limit", "optional bool", "something grew by more"},
    {"before", "diff_run", "the first run"},
    {"after", "diff_run", "the second run"},
    {"devices", "list of diff_device", "the cards that both used"},
    {"notes", "list of text", "what else is worth knowing"},
)},
{"diff_run", "a run that is compared", NULL, FIELDS(
    {"source", "text", "its file or directory"},
    {"verdict", VERDICT, "what came of it"},
    {"command", "list of text", "the command, word by word"},
    {"gpu", "text", "the card's name in the catalogue"},
    {"memory_bytes", "uint", "the card's"},
    {"torch", "text", "PyTorch's version; empty: not seen"},
)},
{"diff_pair", "a figure of both runs", NULL, FIELDS(
    {"before", "uint", "in the first run"},
    {"after", "uint", "in the second run"},
)},
{"diff_device", "a card that both runs used", NULL, FIELDS(
    {"rank", "uint", "of the process"},
    {"index", "uint", "of the card"},
    {"peak_allocated_bytes", "diff_pair", "see report"},
    {"peak_reserved_bytes", "diff_pair", "see report"},
    {"peak_used_bytes", "diff_pair", "see report"},
    {"headroom_bytes", "diff_pair", "see report"},
    {"categories_at_peak", "optional map of diff_pair", "by category"},
    {"modules", "optional list of diff_module", "those that changed"},
    {"no_module", "optional diff_pair", "what no module was at work for"},
    {"grew_most", "optional diff_most", "the deepest module that has at least half of the growth of the one above"},
)},
{"diff_module", "a module that changed", NULL, FIELDS(
    {"name", "text", "its path"},
    {"parent", "optional text", "the name of the one above"},
    {"state", "both|new|gone", "in which run it was"},
    {"bytes_at_peak", "diff_pair", "parts included"},
    {"self_bytes_at_peak", "diff_pair", "without its parts"},
)},
{"diff_most", "the module that grew", "diff_pair", FIELDS(
    {"name", "text", "its path"},
    {"itself", "bool", "it grew itself, not its parts"},
)},

/* --- gpus and clusters ---------------------------------------------------- */

{"gpus", "what gpus --json writes", NULL, FIELDS(
    {"schema", "uint", "1"},
    {"gpus", "list of gpu_card", "the catalogue"},
)},
{"gpu", "what gpus NAME --json writes", NULL, FIELDS(
    {"schema", "uint", "1"},
    {"gpu", "gpu_card", "the card"},
)},
{"clusters", "what clusters --json writes", NULL, FIELDS(
    {"schema", "uint", "1"},
    {"clusters", "list of cluster_row", "the measured ones first"},
)},
{"cluster", "what clusters NAME --json writes", NULL, FIELDS(
    {"schema", "uint", "1"},
    {"cluster", "cluster_row", "the cluster"},
)},
{"cluster_row", "a cluster", NULL, FIELDS(
    {"name", "text", "its name"},
    {"gpu", "text", "its cards"},
    {"about", "text", "for people"},
    {"measured", "bool", "false: only its data sheet is known"},
    {"families", "list of cluster_family", "what was fitted"},
)},
{"cluster_family", "a collective with one number of GPUs a node", NULL, FIELDS(
    {"collective", "text", "as nccl-tests calls it"},
    {"gpus_per_node", "uint", "how many"},
    {"nodes", "list of uint", "the node counts measured"},
    {"size_median", "optional number", "median relative error at sizes kept out"},
    {"size_p95", "optional number", "the 95th percentile of it"},
    {"between_median", "optional number", "at node counts between known ones"},
    {"beyond_median", "optional number", "at the next larger node count"},
)},
{"gpu_source", "where figures of a card are from", NULL, FIELDS(
    {"keys", "list of text", "which figures"},
    {"source", "text", "from where"},
)},
{"gpu_card", "a card of the catalogue; data/gpus/README.md says more", NULL, FIELDS(
    {"name", "text", "in the catalogue"},
    {"device_name", "text", "as the driver calls it"},
    {"compute_capability", "text", "\"9.0\""},
    {"memory_bytes", "uint", "all that CUDA has"},
    {"smi_memory_mib", "uint", "nvidia-smi's memory.total"},
    {"context_bytes", "uint", "what cudaFree(0) takes"},
    {"context_torch_bytes", "uint", "the same after PyTorch's first kernel"},
    {"modules_eager_bytes", "uint", "what a context takes more under CUDA_MODULE_LOADING=EAGER"},
    {"cublas_bytes", "uint", "what each cuBLAS handle takes"},
    {"cudnn_bytes", "uint", "what a process's first handle takes"},
    {"cufft_bytes", "uint", "the same"},
    {"cusparse_bytes", "uint", "the same"},
    {"cusolver_bytes", "uint", "the same"},
    {"nccl_bytes", "uint", "what each communicator of more than one rank takes; 0: it follows from nccl_channels"},
    {"nccl_channels", "uint", "of a collective among all cards of a machine"},
    {"ecc", "uint", "1: it is on as delivered"},
    {"sm_count", "uint", "streaming multiprocessors"},
    {"clock_base_mhz", "uint", "the base clock"},
    {"clock_boost_mhz", "uint", "the boost clock"},
    {"clock_memory_mhz", "uint", "the memory's clock"},
    {"memory_bus_bits", "uint", "the memory's width"},
    {"memory_gbps", "number", "1e9 bytes a second, by the data sheet"},
    {"l2_bytes", "uint", "the L2 cache"},
    {"copy_engines", "uint", "how many"},
    {"fp64_tflops", "number", "dense peak, 1e12 operations a second; 0: no such unit"},
    {"fp64_tensor_tflops", "number", "dense peak, 1e12 operations a second; 0: no such unit"},
    {"fp32_tflops", "number", "dense peak, 1e12 operations a second; 0: no such unit"},
    {"tf32_tflops", "number", "dense peak, 1e12 operations a second; 0: no such unit"},
    {"fp16_tflops", "number", "dense peak, 1e12 operations a second; 0: no such unit"},
    {"bf16_tflops", "number", "dense peak, 1e12 operations a second; 0: no such unit"},
    {"fp8_tflops", "number", "dense peak, 1e12 operations a second; 0: no such unit"},
    {"int8_tops", "number", "dense peak, 1e12 operations a second; 0: no such unit"},
    {"fp4_tflops", "number", "dense peak, 1e12 operations a second; 0: no such unit"},
    {"nvlink_gbps", "number", "all links together, one way, 1e9 bytes a second"},
    {"nvlink_links", "uint", "how many"},
    {"pcie_generation", "uint", "of the slot"},
    {"pcie_lanes", "uint", "of the slot"},
    {"power_watts", "number", "the limit as delivered"},
    {"warp_size", "uint", "threads"},
    {"max_threads_per_block", "uint", "the limit"},
    {"max_threads_per_sm", "uint", "the limit"},
    {"max_blocks_per_sm", "uint", "the limit"},
    {"registers_per_block", "uint", "the limit"},
    {"registers_per_sm", "uint", "the limit"},
    {"shared_per_block_bytes", "uint", "the limit"},
    {"shared_per_block_optin_bytes", "uint", "the limit on request"},
    {"shared_per_sm_bytes", "uint", "the limit"},
    {"shared_reserved_bytes", "uint", "of each block, for the driver"},
    {"fp32_lanes_per_sm", "uint", "FP32 units"},
    {"aliases", "optional list of text", "other names"},
    {"base", "optional text", "the card whose figures it starts from"},
    {"sources", "optional list of gpu_source", "where the figures are from"},
)},
{0},
};
/* clang-format on */
