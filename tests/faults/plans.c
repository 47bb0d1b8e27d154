/* See plans.h. */
#include "plans.h"

#define SHORT                                                                              \
    "--csv", "rows.csv", "--max-time", "0.002", "--max-samples", "3", "--min-samples", "2",    \
        "--warmup", "1", "--quiet"
#define QUICK SHORT, "--timeout", "5"

static const char *const all_kinds[] = {"once", "lost", "on", NULL};
static const char *const once[] = {"once", NULL}, *const lost[] = {"lost", NULL};
static const char *const once_or_lost[] = {"once", "lost", NULL};
static const char *const host_kinds[] = {"once", "on", "signal", NULL};
static const char *const once_or_signal[] = {"once", "signal", NULL};

#define CUDA_AS(all, plain, what, ...)                                                     \
    .plan = "cuda", .name = what, .kinds = all, .few = plain,             \
    .arguments = {"%cuda_program", QUICK, __VA_ARGS__}
#define CUDA(...) CUDA_AS(all_kinds, __VA_ARGS__), .from_cases = 1
#define HOST(plain, what, ...)                                                             \
    .plan = "host", .name = what, .kinds = host_kinds, .few = plain,      \
    .arguments = {"%host_program", QUICK, __VA_ARGS__}
#define TOOL(plain, what, ...)                                                             \
    .plan = "compare", .name = what, .kinds = host_kinds, .few = plain,   \
    .says_the_same = 1, .arguments = {"%gpubench-compare", __VA_ARGS__}
#define SUITE(suite, ...)                                                                  \
    {.plan = "suites", .name = suite, .kinds = once,                                           \
     .arguments = {"%" suite, SHORT, "--timeout", "30", "--mode", "cold", __VA_ARGS__}}
#define RANKS(suite, ...)                                                                  \
    .plan = "ranks", .kinds = once_or_lost,                                                     \
    .arguments = {"%" suite, SHORT, "--nccl", "%libfake_nccl.so", "--timeout", "30", __VA_ARGS__}
#define TRACED(...)                                                                        \
    .plan = "cupti", .kinds = all_kinds, .from_cases = 1,                                       \
    .arguments = {"%trace_program", QUICK, "--mode", "cold", __VA_ARGS__}
#define BLAS(suite, ...)                                                                   \
    .plan = "blas", .kinds = once_or_lost,                                                      \
    .arguments = {"%cuda/" suite, SHORT, "--timeout", "30", "--mode", "cold", "--dtype", "f32", __VA_ARGS__}
#define STEP "b=2 t=9 d=64 h=2 ff=256 l=1 v=250"
/* Rows of an H200, of two campaigns with two runs each: what --self needs, whatever is committed
 * as a baseline. */
#define OLD "--filter", "f32", "@tests/fixtures/runs.csv"
#define NEW "@tests/fixtures/runs.csv"

const scenario scenarios[] = {
    {CUDA_AS(all_kinds, once, "opening", "--mode", "cold", "--filter", "^last")},
    {CUDA(lost, "cold", "--mode", "cold", "--filter", "first|own|left|right")},
    {CUDA(once, "graph", "--mode", "graph", "--filter", "first|own")},
    {CUDA(NULL, "sweep", "--mode", "cold", "--filter", "swept|last")},
    {CUDA(NULL, "hot", "--mode", "hot", "--filter", "first|own|left|right")},
    {CUDA(NULL, "dirty", "--mode", "dirty", "--filter", "left|right")},
    {CUDA(NULL, "modes in turn", "--mode", "cold,hot,graph", "--filter", "first|left|right")},
    {CUDA(NULL, "--runs 2", "--mode", "cold", "--runs", "2", "--filter", "first|own")},
    {CUDA(NULL, "two devices", "--mode", "cold", "--device", "0,1", "--filter", "first|own")},
    {CUDA_AS(once, NULL, "--energy", "--mode", "cold", "--filter", "first", "--energy"),
     .from_cases = 1},
    {HOST(once, "rows", "--filter", "first|left|right")},
    {HOST(NULL, "files", "--filter", "first|swept", "--json", "rows.json", "--samples", "samples.csv")},
    {HOST(once, "--runs 2 on the host", "--filter", "first|last", "--runs", "2")},
    {HOST(NULL, "files of --runs 2", "--filter", "first|last", "--runs", "2", "--json", "rows.json",
          "--samples", "samples.csv")},
    {HOST(NULL, "modes on the host", "--mode", "cold,hot", "--filter", "first|left|right")},
    {HOST(NULL, "--trace", "--filter", "first|last", "--kernels", "--trace", "trace.json")},
    {TOOL(once, "a verdict", OLD, NEW)},
    {TOOL(NULL, "a verdict as CSV", "--format", "csv", OLD, NEW)},
    {TOOL(NULL, "a verdict as JSON", "--format", "json", OLD, NEW)},
    {TOOL(NULL, "a verdict as markdown", "--format", "markdown", OLD, NEW)},
    {TOOL(NULL, "for GitHub", "--format", "github", OLD, NEW)},
    {TOOL(NULL, "false alarms", "--self", NEW)},
    {TOOL(NULL, "history", "--history", NEW)},
    {TOOL(NULL, "cards", "--cards", "@baselines/nvidia-h100-80gb-hbm3/loss.csv")},
    {TOOL(once_or_signal, "a verdict in a file", "--output", "rows.csv", OLD, NEW), .writes_file = 1},
    SUITE("attention", "--shape", "b=1 h=2 t=33 d=32 causal=1", "--dtype", "f32"),
    SUITE("block", "--shape", "b=1 t=17 d=32 h=2 ff=64", "--dtype", "f32"),
    SUITE("ceilings", "--filter", "^bandwidth.read loop"),
    SUITE("embedding", "--shape", "n=9 v=50 c=32 t=3 zipf=0", "--dtype", "f32"),
    SUITE("ffn", "--shape", "n=9 d=32 ff=64", "--dtype", "f32"),
    SUITE("loss", "--shape", "n=5 v=301", "--dtype", "f32"),
    SUITE("memcpy", "--shape", "bytes=4096"),
    SUITE("model", "--shape", "b=2 t=5 d=24 h=3 ff=32 l=2 v=17 tied=1", "--dtype", "f32", "--filter",
          "model.step"),
    SUITE("norm", "--shape", "n=7 c=96", "--dtype", "f32"),
    SUITE("optimizer", "--shape", "d=32 ff=64 l=1 v=50 t=9", "--dtype", "f32"),
    SUITE("rope", "--shape", "b=1 h=2 t=5 d=8", "--dtype", "f32"),
    {RANKS("collective_cuda", "--shape", "bytes=64", "--filter", "all_|send"), .name = "collectives"},
    {RANKS("collective_cuda", "--shape", "bytes=64", "--filter", "scatter|broadcast", "--mode", "graph"),
     .name = "collectives in graphs"},
    {RANKS("scaling_cuda", "--shape", STEP, "--filter", "weak.* f32 gpus=2"), .name = "steps of two ranks"},
    {RANKS("scaling_cuda", "--shape", STEP, "--filter", "overlap.* f32"), .name = "overlaps"},
    {BLAS("ceilings", "--shape", "words=0 m=5 n=7 k=9", "--filter", "gemm"), .name = "products"},
    {BLAS("ffn", "--shape", "n=4 d=8 ff=16", "--filter", "ffn.forward", "--no-verify"),
     .name = "ffn.forward by cuBLAS"},
    {BLAS("ffn", "--shape", "n=4 d=8 ff=16", "--filter", "ffn.backward", "--no-verify"),
     .name = "ffn.backward by cuBLAS"},
    {BLAS("attention", "--shape", "b=1 h=2 t=9 d=8 causal=1", "--filter", "naive_cublas", "--no-verify"),
     .name = "attention by cuBLAS"},
    {BLAS("block", "--shape", "b=1 t=5 d=16 h=2 ff=24", "--filter", "block.forward.* keep=1",
          "--no-verify"),
     .name = "block.forward by cuBLAS"},
    {TRACED("--kernels", "--kernels-csv", "kernels.csv"), .name = "kernels by CUPTI"},
    {TRACED("--trace", "trace.json", "--memory"), .name = "a timeline by CUPTI"},
    {.plan = "race", .name = "a race", .kinds = host_kinds, .says_the_same = 1, .tells_time = 1,
     .arguments = {"%gpubench-compare", "--race", "@tests/faults/racer.sh", "@tests/faults/slower.sh"}},
};
const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
