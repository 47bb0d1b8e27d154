/*
 * tuner.cuh - what linear.cu and tuner.cu have of each other.
 */
#ifndef LINEAR_TUNER_CUH
#define LINEAR_TUNER_CUH

#include "linear.cuh"

constexpr size_t LINEAR_LT_WORKSPACE_BYTES = size_t(64) << 20;
constexpr size_t LINEAR_ALIGNMENT = 256; /* what cuBLASLt wants of a workspace */

/* How a problem is done best, and how long that took. */
struct linear_choice {
    float milliseconds;
    bool fused; /* the epilogue inside the product */
    cublasLtMatmulAlgo_t algorithm;
};

/* The choice, made by timing the first time that the process asks for the
 * problem on a device. KERNEL_OK or an error code. */
int linear_choose(cublasHandle_t handle, const linear_problem &problem, linear_choice *best);

/* The library's first proposal, with the epilogue inside if it has one there; nothing is
 * timed. */
int linear_propose_first(cublasHandle_t handle, const linear_problem &problem,
                         linear_choice *first);

/* The library's descriptors of a plan whose problem, by_lt and fused are set. */
int linear_describe(linear_plan *plan);

/* The operands of an epilogue that runs inside a described plan's product. */
int linear_set_pointers(const linear_plan &plan, const linear_operands &operands);

#endif
