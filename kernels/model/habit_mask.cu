/*
 * habit_mask.cu - the habit `mask`: the causal mask of attention whose scores are in memory.
 *
 * 1. rebuilt    A matrix [tokens, tokens], made by a launch in each step and added to every
 *               head's scores.
 * 2. cached     The same matrix, made once.
 * 3. by_index   No matrix: the softmax of a row looks at no key behind its query.
 *
 * Bound by the scores' traffic: 16 bytes a score and head in f32, and for the mask 4 more,
 * which at 1024 tokens come out of the L2 cache. by_index also reads half of the scores.
 * Backward needs no mask: what forward left of a hidden key is a probability of 0.
 */
#include <math.h>
#include <new>

#include "../common/ceil_div.cuh"
#include "habits.cuh"
#include "model.cuh"

namespace {

constexpr int THREADS = 256;

struct mask_state {
    void *step;
    float *mask;     /* NULL: none */
    model_args args; /* with it */
};

__global__ void __launch_bounds__(THREADS) mask_kernel(float *mask, int64_t tokens)
{
    int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (at < tokens * tokens) mask[at] = at % tokens <= at / tokens ? 0.0f : -INFINITY;
}

int make_mask(const mask_state &s, kernel_stream stream)
{
    int64_t tokens = s.args.shape.tokens, blocks = ceil_div(tokens * tokens, int64_t(THREADS));
    if (blocks > INT32_MAX) return KERNEL_ERROR_ARGUMENT;
    mask_kernel<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(s.mask, tokens);
    return cudaGetLastError();
}

/* Naive by cuBLAS where it takes the shape, forward and backward. */
model_way_cuda naive_way()
{
    model_way_cuda way = model_best_cuda();
    for (const char *&name : way.parts.attention_f32) name = nullptr;
    for (const char *&name : way.parts.attention_half) name = nullptr;
    way.parts.attention_f32[0] = way.parts.attention_half[0] = "naive_cublas";
    way.parts.attention_f32[1] = way.parts.attention_half[1] = "naive";
    return way;
}

size_t workspace_bytes(const void *args)
{
    return model_workspace_bytes_cuda(args, naive_way());
}

void release(void *state)
{
    mask_state *s = static_cast<mask_state *>(state);
    if (s->step) model_release_cuda(s->step);
    if (s->mask) cudaFree(s->mask);
    delete s;
}

template <bool IN_MEMORY>
int prepare(const void *args, void **state)
{
    mask_state *s = new (std::nothrow) mask_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    s->args = *static_cast<const model_args *>(args);
    size_t tokens = static_cast<size_t>(s->args.shape.tokens);
    int error = IN_MEMORY ? cudaMalloc(&s->mask, tokens * tokens * sizeof(float)) : cudaSuccess;
    s->args.mask = s->mask;
    if (!error && IN_MEMORY) error = make_mask(*s, nullptr);
    if (!error) error = cudaStreamSynchronize(nullptr);
    if (!error) error = model_prepare_cuda(&s->args, naive_way(), &s->step);
    if (error)
        release(s);
    else
        *state = s;
    return error;
}

template <bool REBUILDS>
int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    mask_state *s = static_cast<mask_state *>(state);
    int error = REBUILDS ? make_mask(*s, stream) : static_cast<int>(KERNEL_OK);
    s->args.settings = static_cast<const model_args *>(args)->settings;
    return error ? error : model_run_cuda(&s->args, workspace, s->step, stream);
}

template <bool IN_MEMORY, bool REBUILDS>
constexpr kernel_variant row(const char *name, const char *note)
{
    return {.name = name, .note = note, .dtypes = MODEL_HABIT_DTYPES,
            .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
            .workspace_bytes = workspace_bytes, .prepare = prepare<IN_MEMORY>,
            .release = release, .run = run<REBUILDS>};
}

} // namespace

const kernel_variant model_mask_rows[3] = {
    row<true, true>("rebuilt", "a mask in memory, made in each step"),
    row<true, false>("cached", "a mask in memory, made once"),
    row<false, false>("by_index", "no mask: no key behind the query is looked at"),
};
