/* See plans.h. */
#include "plans.h"

#define QUICK                                                                              \
    "--csv", "rows.csv", "--max-time", "0.002", "--max-samples", "3", "--min-samples", "2",    \
        "--warmup", "1", "--timeout", "5", "--quiet"

static const char *const all_kinds[] = {"once", "lost", "on", NULL};
static const char *const once[] = {"once", NULL}, *const lost[] = {"lost", NULL};
static const char *const host_kinds[] = {"once", "on", NULL};

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
#define OLD "--filter", "f32", "@baselines/nvidia-h200/loss.csv"
#define NEW "@baselines/nvidia-h200/loss.csv"

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
    {TOOL(once, "a verdict in a file", "--output", "rows.csv", OLD, NEW), .writes_file = 1},
};
const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
