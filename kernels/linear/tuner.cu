/*
 * tuner.cu - which of the algorithms that cuBLASLt's heuristic proposes is
 * the fastest for a step, with the epilogue inside the product or outside: the
 * whole step is timed, since an epilogue that slows the product by more than a
 * kernel of its own is no gain.
 *
 * Teaches that the heuristic's first proposal is often not its fastest. The one
 * file in kernels/ that measures: a choice between the library's algorithms, in
 * prepare, of which nothing is reported.
 */
#include "tuner.cuh"

#include <math.h>

#include <mutex>
#include <vector>

#include "../common/random.h"
#include "../common/ceil_div.cuh"

namespace {

constexpr int CANDIDATES = 16;    /* asked of the heuristic */
constexpr int TIMED_RUNS = 5;     /* of a candidate; the least counts */
constexpr float HOPELESS = 1.15f; /* times the best: not timed again */

/* What a plan's candidates are timed with: operands of the problem's sizes,
 * random, since zeros draw less power and run faster; and bytes to push them
 * out of the L2 cache with, since the measured runs find it cold too. */
struct trial {
    linear_operands operands;
    void *memory, *workspace, *flush, *scale;
    size_t flush_bytes;
    cudaEvent_t start, stop;
    cudaStream_t stream;
};

/* All of it as e4m3, whose bytes as bf16 are small numbers; the scales are 1. */
int fill_e4m3(trial *t, int64_t count)
{
    static const float one = 1.0f;
    cudaError_t error = cudaMalloc(&t->scale, sizeof one);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(t->scale, &one, sizeof one, cudaMemcpyHostToDevice, t->stream);
    if (error != cudaSuccess) return error;
    t->operands.a_scale = t->operands.b_scale = t->operands.d_scale =
        static_cast<const float *>(t->scale);
    return random_normal_cuda(t->memory, KERNEL_E4M3, 2 * count, 0.0f, 0.1f, 1, t->stream);
}

int allocate(trial *t, const linear_problem &p)
{
    size_t element = kernel_dtype_bytes(kernel_result_dtype(p.dtype)); /* the widest */
    int64_t a = p.m * p.k, b = p.k * p.n, d = p.m * p.n, bias = p.m > p.n ? p.m : p.n;
    int64_t per_line = static_cast<int64_t>(LINEAR_ALIGNMENT / element);
    auto padded = [&](int64_t count) { return ceil_div(count, per_line) * per_line; };
    int64_t count = padded(a) + padded(b) + 3 * padded(d) + bias;
    cudaError_t error = cudaMalloc(&t->memory, static_cast<size_t>(count) * element);
    if (error == cudaSuccess) error = cudaMalloc(&t->workspace, linear_workspace_bytes(bias));
    if (error == cudaSuccess) error = cudaMalloc(&t->flush, t->flush_bytes);
    if (error != cudaSuccess) return error;
    char *at = static_cast<char *>(t->memory);
    auto take = [&](int64_t elements) {
        char *taken = at;
        at += static_cast<size_t>(padded(elements)) * element;
        return taken;
    };
    t->operands.a = take(a);
    t->operands.b = take(b);
    t->operands.c = take(d);
    t->operands.d = take(d);
    t->operands.aux = take(d);
    t->operands.bias = at;
    if (p.dtype == KERNEL_E4M3) return fill_e4m3(t, count);
    return random_normal_cuda(t->memory, p.dtype, count, 0.0f, 0.1f, 1, t->stream);
}

int trial_begin(trial *t, const linear_problem &p)
{
    int device, l2_bytes = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess) error = cudaEventCreate(&t->start);
    if (error == cudaSuccess) error = cudaEventCreate(&t->stop);
    if (error != cudaSuccess) return error;
    t->flush_bytes = 2 * static_cast<size_t>(l2_bytes) + 1;
    return allocate(t, p);
}

void trial_end(trial *t)
{
    if (t->stream) cudaStreamSynchronize(t->stream);
    cudaFree(t->memory);
    cudaFree(t->workspace);
    cudaFree(t->flush);
    cudaFree(t->scale);
    if (t->start) cudaEventDestroy(t->start);
    if (t->stop) cudaEventDestroy(t->stop);
    if (t->stream) cudaStreamDestroy(t->stream);
}

/* One cold run of the step. The flush also hides the launches. */
int time_once(cublasHandle_t handle, const trial &t, const linear_plan &plan, float *milliseconds)
{
    cudaError_t error = cudaMemsetAsync(t.flush, 1, t.flush_bytes, t.stream);
    if (error == cudaSuccess) error = cudaEventRecord(t.start, t.stream);
    if (error != cudaSuccess) return error;
    int code = linear_run(handle, plan, t.operands, t.workspace, t.stream);
    if (code) return code;
    error = cudaEventRecord(t.stop, t.stream);
    if (error == cudaSuccess) error = cudaEventSynchronize(t.stop);
    if (error == cudaSuccess) error = cudaEventElapsedTime(milliseconds, t.start, t.stop);
    return error;
}

/* The least of a few runs after one that loads the kernel; fewer where the
 * candidate cannot win any more. */
int time_candidate(cublasHandle_t handle, const trial &t, const linear_plan &plan, float best,
                   float *least)
{
    float milliseconds;
    int error = time_once(handle, t, plan, least);
    if (!error) error = time_once(handle, t, plan, least);
    for (int run = 1; run < TIMED_RUNS && !error && *least < HOPELESS * best; run++) {
        error = time_once(handle, t, plan, &milliseconds);
        if (!error && milliseconds < *least) *least = milliseconds;
    }
    return error;
}

/* The heuristic's proposals for a described plan. None is no error here, and it says so by
 * a status of its own, CUBLAS_STATUS_NOT_SUPPORTED. */
int propose(cublasLtHandle_t lt, const linear_plan &plan,
            cublasLtMatmulHeuristicResult_t (&results)[CANDIDATES], int *count)
{
    cublasLtMatmulPreference_t preference;
    *count = 0;
    cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference);
    if (status != CUBLAS_STATUS_SUCCESS) return cublas_error(status);
    const uint64_t workspace_bytes = LINEAR_LT_WORKSPACE_BYTES;
    const uint32_t operand_alignment = 16; /* what linear_operands promises */
    status = cublasLtMatmulPreferenceSetAttribute(preference,
                                                  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &workspace_bytes, sizeof workspace_bytes);
    for (auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
        if (status == CUBLAS_STATUS_SUCCESS)
            status = cublasLtMatmulPreferenceSetAttribute(preference, name, &operand_alignment,
                                                          sizeof operand_alignment);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulAlgoGetHeuristic(lt, plan.operation, plan.a, plan.b, plan.c, plan.d,
                                                preference, CANDIDATES, results, count);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS) *count = 0;
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? KERNEL_OK : cublas_error(status);
}

bool is_cuda_error(int code) { return code > 0 && code < KERNEL_ERROR_CUBLAS; }

/* Times every proposal for the plan. One that the library then refuses to run
 * is passed over. */
int try_proposals(cublasHandle_t handle, const trial &t, linear_plan *plan, linear_choice *best)
{
    cublasLtMatmulHeuristicResult_t results[CANDIDATES];
    int count = 0;
    int error = linear_set_pointers(*plan, t.operands);
    if (!error) error = propose(reinterpret_cast<cublasLtHandle_t>(handle), *plan, results, &count);
    for (int i = 0; i < count && !error; i++) {
        float milliseconds;
        if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
        plan->algorithm = results[i].algo;
        int code = time_candidate(handle, t, *plan, best->milliseconds, &milliseconds);
        if (is_cuda_error(code)) error = code;
        if (code >= KERNEL_ERROR_CUBLAS) cudaGetLastError(); /* a refused launch may leave one */
        if (code == KERNEL_OK && milliseconds < best->milliseconds)
            *best = {milliseconds, plan->fused, results[i].algo};
    }
    return error;
}

/* With the epilogue inside the product or outside. A library that cannot
 * describe the fused one does without. */
int try_way(cublasHandle_t handle, const trial &t, const linear_problem &problem, bool fused,
            linear_choice *best)
{
    linear_plan plan = {};
    plan.problem = problem;
    plan.by_lt = true;
    plan.fused = fused;
    int error = linear_describe(&plan);
    if (!error) error = try_proposals(handle, t, &plan, best);
    linear_plan_destroy(&plan);
    return fused && !is_cuda_error(error) ? KERNEL_OK : error;
}

int choose_by_timing(cublasHandle_t handle, const linear_problem &problem, linear_choice *best)
{
    trial t = {};
    best->milliseconds = INFINITY;
    int error = trial_begin(&t, problem);
    if (!error && problem.epilogue != LINEAR_PLAIN)
        error = try_way(handle, t, problem, true, best);
    if (!error) error = try_way(handle, t, problem, false, best);
    trial_end(&t);
    if (error) return error;
    return best->milliseconds < INFINITY ? KERNEL_OK : cublas_error(CUBLAS_STATUS_NOT_SUPPORTED);
}

/* The heuristic looks at pointers' alignment, and reads nothing. */
int first_of_way(cublasHandle_t handle, const linear_problem &problem, bool fused,
                 linear_choice *first)
{
    cublasLtMatmulHeuristicResult_t results[CANDIDATES];
    void *aligned = reinterpret_cast<void *>(LINEAR_ALIGNMENT);
    linear_operands operands = {};
    linear_plan plan = {};
    int count = 0;
    operands.bias = operands.aux = aligned;
    operands.a_scale = operands.b_scale = operands.d_scale = static_cast<const float *>(aligned);
    plan.problem = problem;
    plan.by_lt = true;
    plan.fused = fused;
    int error = linear_describe(&plan);
    if (!error) error = linear_set_pointers(plan, operands);
    if (!error) error = propose(reinterpret_cast<cublasLtHandle_t>(handle), plan, results, &count);
    linear_plan_destroy(&plan);
    for (int i = 0; i < count && !error; i++)
        if (results[i].state == CUBLAS_STATUS_SUCCESS) {
            *first = {0, fused, results[i].algo};
            return KERNEL_OK;
        }
    return error ? error : cublas_error(CUBLAS_STATUS_NOT_SUPPORTED);
}

/* What was chosen for a problem stays chosen in this process: a block's parts,
 * measured alone, are to run what the whole ran. */
struct known_choice {
    int device;
    linear_problem problem;
    linear_choice best;
};

bool is_same(const linear_problem &a, const linear_problem &b)
{
    return a.op_a == b.op_a && a.op_b == b.op_b && a.m == b.m && a.n == b.n && a.k == b.k &&
           a.dtype == b.dtype && a.epilogue == b.epilogue && a.adds_c == b.adds_c &&
           a.d_dtype == b.d_dtype;
}

} // namespace

int linear_propose_first(cublasHandle_t handle, const linear_problem &problem,
                         linear_choice *first)
{
    bool has_epilogue = problem.epilogue != LINEAR_PLAIN;
    int error = has_epilogue ? first_of_way(handle, problem, true, first) : KERNEL_OK;
    if (is_cuda_error(error) || (has_epilogue && !error)) return error;
    return first_of_way(handle, problem, false, first);
}

int linear_choose(cublasHandle_t handle, const linear_problem &problem, linear_choice *best)
{
    static std::mutex mutex;
    static std::vector<known_choice> known;
    std::lock_guard<std::mutex> lock(mutex);
    int device;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    for (const known_choice &one : known)
        if (one.device == device && is_same(one.problem, problem)) {
            *best = one.best;
            return KERNEL_OK;
        }
    int code = choose_by_timing(handle, problem, best);
    if (code == KERNEL_OK) known.push_back({device, problem, *best});
    return code;
}
