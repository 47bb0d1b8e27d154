/* What another library refuses is told in its own words: the second case's row fails with
 *     cublasSgemm: an unsupported value or parameter was passed to the function (7)
 * nvcc -o cublas_errors -I. examples/cublas_errors.cu -lcublas */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
#include <cublas_v2.h>
enum { N = 1024 };
static cublasHandle_t handle;
static float *a, *c;

static int setup(void *, gpubench *bench) {
    a = (float *)gpubench_alloc(bench, N * N * sizeof *a, GPUBENCH_DEVICE);
    c = (float *)gpubench_alloc(bench, N * N * sizeof *c, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    if (!a || !c)
        return GPUBENCH_OOM;
    GPUBENCH_TRY(cudaMemset(a, 0x3c, N * N * sizeof *a), cudaGetErrorString);
    GPUBENCH_TRY(cublasCreate(&handle), cublasGetStatusString);
    return GPUBENCH_OK;
}
static int run(void *context, gpubench_stream stream) {
    const int *stride = (const int *)context; /* of a column: N at least */
    const float one = 1, zero = 0;
    GPUBENCH_TRY(cublasSetStream(handle, stream), cublasGetStatusString);
    GPUBENCH_TRY(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, a, *stride, a, N,
                             &zero, c, N), cublasGetStatusString);
    return GPUBENCH_OK;
}
static void teardown(void *) {
    if (handle)
        cublasDestroy(handle);
    handle = NULL;
}
int main(int argc, char **argv) {
    static int strides[] = {N, N / 2};
    gpubench *bench = gpubench_open("cublas_errors", argc, argv);
    for (int i = 0; i < 2; i++) {
        gpubench_case one = gpubench_case_init("sgemm", run, &strides[i]);
        one.variant = i ? "refused" : "accepted";
        one.setup = setup, one.teardown = teardown, one.flops = 2ull * N * N * N;
        gpubench_measure(bench, &one);
    }
    return gpubench_close(bench);
}
