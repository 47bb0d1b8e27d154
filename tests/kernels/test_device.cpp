/* What a GPU cannot do, as kernels/common/device.cuh tells it, on devices that are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern "C" {
#include <cmocka.h>
}

#include "kernels/common/device.cuh"

static struct {
    int count, major, minor, shared_bytes;
} device;

extern "C" cudaError_t cudaGetDevice(int *current)
{
    *current = 0;
    return device.count > 0 ? cudaSuccess : cudaErrorInvalidValue;
}

extern "C" cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = device.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = device.minor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = device.shared_bytes; break;
    default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

static void too_little_shared_memory_is_said_with_both_sizes(void **)
{
    device = {1, 8, 6, 99 * 1024};
    assert_null(device_shared_memory_unsupported(99 * 1024));
    assert_string_equal(device_shared_memory_unsupported(160 * 1024),
                        "needs 160 KiB of shared memory per block, this GPU has 99");
    assert_string_equal(device_shared_memory_unsupported(99 * 1024 + 1),
                        "needs 100 KiB of shared memory per block, this GPU has 99");
    device = {1, 9, 0, 227 * 1024};
    assert_null(device_shared_memory_unsupported(160 * 1024));
}

static void bf16_and_tf32_products_need_8_0(void **)
{
    static const char reason[] = "bf16 and tf32 products need compute capability 8.0";
    device = {1, 7, 5, 64 * 1024};
    assert_null(device_products_unsupported(KERNEL_F32));
    assert_null(device_products_unsupported(KERNEL_F16));
    assert_string_equal(device_products_unsupported(KERNEL_BF16), reason);
    assert_string_equal(device_products_unsupported(KERNEL_TF32), reason);
    device = {1, 8, 0, 163 * 1024};
    assert_null(device_products_unsupported(KERNEL_BF16));
    device = {1, 12, 0, 99 * 1024};
    assert_null(device_products_unsupported(KERNEL_TF32));
}

static void a_capability_is_two_digits_and_more(void **)
{
    device = {1, 12, 1, 0};
    assert_int_equal(device_compute_capability(), 121);
    device = {0, 9, 0, 0};
    assert_int_equal(device_compute_capability(), 0);
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_little_shared_memory_is_said_with_both_sizes),
        cmocka_unit_test(bf16_and_tf32_products_need_8_0),
        cmocka_unit_test(a_capability_is_two_digits_and_more),
    };
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
