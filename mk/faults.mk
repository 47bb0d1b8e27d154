# Faults at every call, signals at any moment: `make faults` tries them all, the tests some.

FAULTS := $(TESTS)/faults

$(FAULTS)/cuda_program: tests/faults/cuda_program.c tests/faults/cuda_calls.c tests/faults/fault.c \
  $(FAKE_CUDA_SOURCES) $(FAKE_NVML) $(TEST_HEADERS) tests/faults/wrapped.sh
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -rdynamic -o $@ $(filter tests/faults/%.c,$^) $(FAKE_CUDA) \
	  $$(tests/faults/wrapped.sh tests/faults/cuda_calls.c) -Wl,--no-as-needed $(FAKE_NVML) \
	  -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/..' -lpthread -ldl -lm

$(FAULTS)/faults: $(patsubst %,tests/faults/%.c,faults plans outcome trial) $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -o $@ $(filter %.c,$^)

# Programs whose calls of the host can fail: one that uses what the header offers, the
# compare tool, and the suites with the CPU's kernels.
HOST_FAULTS := tests/faults/host_calls.c tests/faults/fault.c
WRAP_HOST = $$(tests/faults/wrapped.sh tests/faults/host_calls.c)
FAULTY := $(TEST_CFLAGS) $(SANITIZE)
FAULT_PROGRAMS := $(FAULTS)/cuda_program $(FAULTS)/host_program $(FAULTS)/gpubench-compare

$(FAULTS)/host_program: tests/faults/host_program.c $(HOST_FAULTS) $(TEST_HEADERS) gpubench_trace.h
	@mkdir -p $(@D)
	$(CC) $(FAULTY) -o $@ $(filter tests/faults/%.c,$^) $(WRAP_HOST) -lpthread -lm

$(FAULTS)/gpubench-compare: $(wildcard compare/*.c) $(HOST_FAULTS) $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(FAULTY) -o $@ $(filter %.c,$^) $(WRAP_HOST) -lpthread -lm

# The suites with the CPU's kernels, under the sanitizers like what they are linked with.
# Those of several ranks have no CPU variant without MPI.
FAULT_SUITES := $(filter-out collective scaling,$(SUITES) $(if $(filter rope,$(SUITES)),,rope))
FAULT_SUITE_PROGRAMS := $(FAULT_SUITES:%=$(FAULTS)/%)
SANE_KERNELS := $(KERNEL_SOURCES:%.c=$(TESTS)/sane/%.o)
FAULT_OBJECTS = $(FAULTS)/host_calls.o $(FAULTS)/fault.o $(SANE_KERNELS)

$(FAULTS)/suites/%.o: suites/%.c
	@mkdir -p $(@D)
	$(CC) $(FAULTY) -MMD -MP -c $< -o $@

$(FAULTS)/%.o: tests/faults/%.c
	@mkdir -p $(@D)
	$(CC) $(FAULTY) -MMD -MP -c $< -o $@

define FAULT_SUITE
$(FAULTS)/$(1): $(FAULTS)/suites/$(1).o $(patsubst $(BUILD)/%,$(FAULTS)/%,$(call SUITE_PARTS,$(1)) $(SUITE_SHARED)) \
  $(FAULT_OBJECTS)
	$$(CC) $$(FAULTY) -pthread -o $$@ $$^ $$(WRAP_HOST) -ldl -lm
endef
$(foreach s,$(FAULT_SUITES),$(eval $(call FAULT_SUITE,$(s))))

# The suites of several ranks on the substitutes for CUDA and NCCL.
FAULT_RANKS := $(FAULTS)/collective_cuda $(FAULTS)/scaling_cuda
FAULT_NCCL := $(FAULTS)/libfake_nccl.so

$(FAULT_NCCL): $(TESTS)/libfake_nccl.so
	@mkdir -p $(@D)
	cp $< $@

$(FAULTS)/collective_cuda: suites/collective.c
$(FAULTS)/scaling_cuda: tests/fixtures/scaling_cuda.c $(wildcard suites/scaling*.c)
$(FAULT_RANKS): $(RANKS_SOURCES) tests/faults/cuda_calls.c tests/faults/fault.c $(NCCL_HOST_SIDE) \
  $(SANE_KERNELS) $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -rdynamic -o $@ $(FAKE_CUDA) $(filter-out tests/fake_cuda/% %.h,$^) \
	  $$(tests/faults/wrapped.sh tests/faults/cuda_calls.c) -lstdc++ -lpthread -ldl -lm

# What CUPTI watches, where the toolkit is. The substitute's own files are compiled with its
# own headers.
FAULT_TRACED := $(if $(CUPTI_TEST),$(FAULTS)/trace_program)

$(FAULTS)/fake_cuda/%.o: tests/fake_cuda/%.c $(wildcard tests/fake_cuda/*.h)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -Itests/fake_cuda -c $< -o $@

$(FAULTS)/cuda_calls.o: tests/faults/cuda_calls.c $(wildcard tests/fake_cuda/*.h) tests/faults/fault.h
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -Itests/fake_cuda -c $< -o $@

$(FAULTS)/trace_program: tests/faults/trace_program.c tests/faults/fault.c $(FAULTS)/cuda_calls.o $(CUPTI_TEST) \
  tests/faults/describe.h tests/fake_cupti/device.h $(FAKE_CUDA_SOURCES:tests/%.c=$(FAULTS)/%.o) $(FAKE_NVML) gpubench.h gpubench_trace.h
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -DGPUBENCH_CUDA=1 -D_XOPEN_SOURCE=700 -isystem $(TOOLKIT)/include -rdynamic -o $@ \
	  $(filter tests/faults/%.c $(FAULTS)/%.o,$^) $$(tests/faults/wrapped.sh tests/faults/cuda_calls.c) \
	  -Wl,--no-as-needed $(FAKE_NVML) -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/..' -lpthread -ldl -lm

# The suites whose kernels call cuBLAS and cuRAND, where the toolkit is: the host's half of the
# kernels on substitutes for the libraries and the CUDA runtime. For the device's half the
# oldest target is the soonest compiled.
FAULT_BLAS_SUITES := $(if $(wildcard $(TOOLKIT)/include/cublasLt.h),attention block ceilings ffn)
FAULT_BLAS := $(FAULT_BLAS_SUITES:%=$(FAULTS)/cuda/%)
FAULT_TARGET = $(firstword $(shell $(NVCC) --list-gpu-arch))
FAULT_TOOLKIT = $(FAULTY) -DGPUBENCH_CUDA=1 -DGPT_CUPTI=0 -D_XOPEN_SOURCE=700 -isystem $(TOOLKIT)/include
FAULT_FAKES := $(patsubst tests/%.c,$(FAULTS)/cuda/tests/%.o,$(wildcard tests/fake_cublas/*.c) tests/faults/left.c) \
  $(FAKE_CUDA_SOURCES:tests/%.c=$(FAULTS)/%.o) $(FAULTS)/cuda_calls.o $(FAULTS)/fault.o

$(FAULTS)/cuda/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(FAULT_TOOLKIT) $(DESCRIBE) -MMD -MP -c $< -o $@

$(FAULTS)/cuda/suites/gpubench.o: DESCRIBE := -include tests/faults/describe.h

$(FAULTS)/cuda/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O1 $(UNFORTIFIED) -arch=$(FAULT_TARGET) -code=$(FAULT_TARGET) \
	  $(patsubst %,-Xcompiler %,-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all) \
	  -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(FAULTS)/cuda/libkernels.a: $(patsubst %.cu,$(FAULTS)/cuda/%.cu.o,$(filter-out kernels/collective/%,$(wildcard kernels/*/*.cu)))
	rm -f $@
	$(AR) qcs $@ $^

define FAULT_BLAS_SUITE
$(FAULTS)/cuda/$(1): $(FAULTS)/cuda/suites/$(1).o $(patsubst $(BUILD)/%,$(FAULTS)/cuda/%,$(call SUITE_PARTS,$(1)) $(SUITE_SHARED)) \
  $(FAULT_FAKES) $(FAULTS)/cuda/libkernels.a $(SANE_KERNELS)
	$$(CC) $$(FAULTY) -rdynamic -o $$@ $$^ $$$$(tests/faults/wrapped.sh tests/faults/cuda_calls.c) \
	  -lstdc++ -lpthread -ldl -lm
endef
$(foreach s,$(FAULT_BLAS_SUITES),$(eval $(call FAULT_BLAS_SUITE,$(s))))

$(FAULTS)/interrupt: tests/faults/interrupt.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -o $@ $<

# What `make test` runs of it: a part of the plans. tests.mk, which is read before this,
# does not know what they need.
FAULT_PLANS := cuda host compare
FAULT_NEEDS = $(FAULTS)/faults $(FAULT_PROGRAMS) $(COMPARE) $(SIGNAL_NEEDS)
SIGNAL_NEEDS = $(FAULTS)/host_program $(FAULTS)/interrupt $(COMPARE) build/cpu/norm $(TESTS)/first
SIGNALLED = tests/faults/signals.sh $(FAULTS) $(COMPARE) build/cpu/norm $(TESTS)/first
HOSTILE = tests/faults/hostile.sh $(FAULTS)/host_program $(COMPARE) build/cpu/norm
PLACES = tests/faults/hostile_places.sh $(FAULTS)/host_program $(COMPARE) build/cpu/norm
FAULT_TESTS = $(FAULT_PLANS:%="$(FAULTS)/faults % $(CURDIR)/$(FAULTS)") "$(SIGNALLED)" "$(HOSTILE)" "$(PLACES)" \
  tests/scripts/test_reliability.sh
test-programs: $(FAULT_NEEDS)

.PHONY: faults-more
faults: $(FAULT_NEEDS) $(TESTS)/racer   ## each call of CUDA, NVML and the system fails in turn, and how often (FAULT_EACH=4)
	failed=0; $(HOSTILE) || failed=1; $(PLACES) || failed=1; \
	$(FAULTS)/faults '$(FAULT_PLANS) race' '$(CURDIR)/$(FAULTS)' all || failed=1; \
	exit $$failed

faults-more: $(FAULT_NEEDS) $(FAULT_SUITE_PROGRAMS) $(FAULT_RANKS) $(FAULT_NCCL) $(FAULT_TRACED) $(FAULT_BLAS)   ## the same in every suite, of CUPTI, cuBLAS and cuRAND
	$(FAULTS)/faults 'suites ranks $(if $(FAULT_BLAS),blas) $(if $(FAULT_TRACED),cupti)' '$(CURDIR)/$(FAULTS)' all

# Of each kind of what writes results; as many by MOMENTS, drawn by SEED.
MOMENTS ?= 200
.PHONY: signals
signals: $(SIGNAL_NEEDS)   ## signals at MOMENTS=200 random moments of suites, races and scripts
	$(SIGNALLED) $(MOMENTS) $(SEED)
