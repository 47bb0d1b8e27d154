# What needs nvcc or a GPU to test.

# The kernels are compiled for one kind of GPU after the other, because -j belongs to the
# compiling of each.
MATRIX := 75 80 86 89 90a 100 120
arch-matrix:   ## compile every kernel and link a suite for each of MATRIX="75 80 86 89 90a 100 120"
	@built= failed=; for arch in $(MATRIX); do \
	  folder=build/arch-$$arch; \
	  if $(MAKE) --no-print-directory BACKEND=cuda ARCH=$$arch BUILD=$$folder $$folder/attention; \
	  then built="$$built $$arch"; else failed="$$failed $$arch"; fi; \
	done; \
	echo "arch-matrix: built for$${built:- none}$${failed:+, failed for$$failed}"; \
	[ -z "$$failed" ]

GPU_TESTS := four_cases guards launches truth faults
$(BUILD)/tests/launches: GPU_TEST_LIBRARIES := -lcublas
$(BUILD)/tests/%: tests/gpu/%.cu $(BUILD)/flags
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -MMD -MP -MF $@.d -o $@ $< $(GPU_TEST_LIBRARIES) -ldl -lpthread

# In C, as what they share with the host's tests and with the suites is.
GPU_C_TESTS := train ones
$(GPU_C_TESTS:%=$(BUILD)/tests/%.o): $(BUILD)/tests/%.o: tests/gpu/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) -std=c11 $(UNFORTIFIED) $(CFLAGS) $(WARNINGS) $(EXHAUSTIVE) $(CUDA_CFLAGS) -MMD -MP -c $< -o $@

$(GPU_C_TESTS:%=$(BUILD)/tests/%): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libkernels.a
	$(LINK)

gpu-tests: all planted $(GPU_TESTS:%=$(BUILD)/tests/%) $(GPU_C_TESTS:%=$(BUILD)/tests/%)   ## build what test-gpu and planted.sh run

test-gpu: gpu-tests   ## what only a GPU can test
	tests/run.sh "tests/gpu/run.sh $(BUILD)" "tests/gpu/faults.sh $(BUILD)"

# Without a GPU the script says so, and ends with 2.
test-truth: $(if $(filter cuda,$(BACKEND)),$(BUILD)/tests/truth)   ## the cold numbers against Nsight Compute's, as a table
	tests/gpu/truth.sh $(BUILD)/tests/truth
	tests/gpu/ncu_agree.sh $(BUILD)/tests/truth

check-kernels: watch   ## on a GPU: do the kernels of each case add up to its time?
	awk -f compare/csv.awk -f scripts/kernel_sums.awk $(SUITES:%=results/kernels/%.csv)

# The norm suite with 5 % more work in one kernel and the healthy objects of all
# the rest: the linker takes nothing from the library that is defined already.
PLANTED := $(BUILD)/planted

$(PLANTED)/norm_vectorized.cu: kernels/norm/vectorized.cu tests/gpu/planted.patch
	@mkdir -p $(@D)
	patch --fuzz=0 --reject-file=- -o $@ $^

$(PLANTED)/norm_vectorized.o: $(PLANTED)/norm_vectorized.cu $(BUILD)/flags
	$(NVCC) $(NVCCFLAGS) -Ikernels/norm -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(PLANTED)/norm: $(BUILD)/suites/norm.o $(PLANTED)/norm_vectorized.o $(SUITE_LINKS)
	$(LINK)

planted: $(BUILD)/norm $(PLANTED)/norm $(COMPARE)   ## what tests/gpu/planted.sh judges: is a slowdown of 5 % found?
