# Tests that need no GPU: `make test`. The ones that need one are in gpu-tests.mk.

# Kernels on the CPU against their oracles: tests/kernels/test_<name>.c.
KERNEL_TESTS := accumulation inputs attention attention_backward block ceilings checkpoint \
  collective cpu embedding ffn habits loader loss loss_scale memcpy model \
  norm optimizer part pool rope safetensors shapes simd train
# What suites share, and what they do beside measuring: tests/suites/test_<name>.c.
SUITE_TESTS := suite parallel suite_block suite_ceilings suite_model suite_optimizer worker scaling_shares
# gpubench.h, through programs in tests/fixtures/: tests/header/test_<name>.c.
HEADER_TESTS := backend codes command_line counters csv devices engine filling helpers hooks host json options \
  pieces processors readings row_files rows samples statistics sweep table verification
TESTS := build/tests
# Suites with their tables of variants turned around, each at a small shape.
MOVED_ROWS := attention block ffn loss model norm optimizer
MOVED_PROGRAMS := $(MOVED_ROWS:%=$(TESTS)/test_moved_rows_%)
SHAPE_attention := b=1 h=2 t=33 d=32 causal=1
SHAPE_block := b=1 t=17 d=32 h=2 ff=64
SHAPE_ffn := n=9 d=32 ff=64
SHAPE_loss := n=5 v=301
SHAPE_model := b=2 t=5 d=24 h=3 ff=32 l=2 v=17 tied=1
SHAPE_norm := n=7 c=96
SHAPE_optimizer := d=32 ff=64 l=1 v=50 t=9
# The same of its CUDA half, on a substitute for the CUDA runtime.
CUDA_PROGRAMS := $(TESTS)/test_cuda_path $(TESTS)/test_cuda_watched $(TESTS)/test_cuda_guards $(TESTS)/test_cuda_devices
TEST_PROGRAMS := $(KERNEL_TESTS:%=$(TESTS)/test_%) $(SUITE_TESTS:%=$(TESTS)/test_%) $(HEADER_TESTS:%=$(TESTS)/test_%) \
  $(CUDA_PROGRAMS) $(TESTS)/test_memcpy_cuda $(TESTS)/test_device $(MOVED_PROGRAMS)
# With _FORTIFY_SOURCE libc marks what must not be ignored; the sanitizers look themselves, at
# more.
TEST_CFLAGS := -std=c11 -O1 -g $(WARNINGS) -I. -Itests $(FORTIFIED)
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all $(UNFORTIFIED)

# What a program built from several sources at once depends on: -MMD would tell only
# the headers of the last source.
TEST_HEADERS := $(wildcard gpubench.h kernels/*/*.h suites/*.h compare/*.h tests/*.h tests/*/*.h)

define LINK_WITH_KERNELS
	@mkdir -p $(@D)
	$(1) $(TEST_CFLAGS) $(2) -D_XOPEN_SOURCE=700 -pthread -MMD -MP -o $@ $< build/cpu/libkernels.a \
	  -lcmocka -ldl -lm
endef

$(KERNEL_TESTS:%=$(TESTS)/test_%): $(TESTS)/test_%: tests/kernels/test_%.c build/cpu/libkernels.a
	$(call LINK_WITH_KERNELS,$(CC))

$(SUITE_TESTS:%=$(TESTS)/test_%): $(TESTS)/test_%: tests/suites/test_%.c build/cpu/libkernels.a
	$(call LINK_WITH_KERNELS,$(CC))

# Suites with their tables of variants turned around.
$(MOVED_PROGRAMS): $(TESTS)/test_moved_rows_%: tests/suites/test_moved_rows.c $(wildcard suites/*.c) \
  build/cpu/libkernels.a $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -D_XOPEN_SOURCE=700 '-DSUITE_FILE="../../suites/$*.c"' \
	  '-DSHAPE="$(SHAPE_$*)"' -pthread -o $@ $< $(wildcard suites/$*_*.c) \
	  suites/part_check.c suites/part_check_heads.c build/cpu/libkernels.a -lcmocka -ldl -lm

# The tests take the CPU's kernels and programs also when the backend is CUDA: all from one
# make, since two at a time would write the same objects.
CPU_HALF := build/cpu/libkernels.a build/cpu/norm build/cpu/collective build/cpu/scaling
ifneq ($(BACKEND),cpu)
.PHONY: cpu-half
cpu-half:
	$(MAKE) BACKEND=cpu $(CPU_HALF)

$(CPU_HALF): cpu-half
	@:
endif

$(HEADER_TESTS:%=$(TESTS)/test_%): $(TESTS)/test_%: tests/header/test_%.c $(TESTS)/host
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -MMD -MP -o $@ $< -lcmocka -lm

$(TESTS)/host: tests/fixtures/host.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -MMD -MP -o $@ $<

# What runs on several threads or in vectors, with the kernels themselves under the
# sanitizers: in their memory and arithmetic, and as threads, then without a BLAS
# library, whose threads the sanitizer does not understand.
SANE_TESTS := loader pool simd attention attention_backward ffn norm loss optimizer embedding \
  inputs ceilings memcpy
KERNEL_SOURCES := $(wildcard kernels/*/*.c)
SANE_PROGRAMS := $(SANE_TESTS:%=$(TESTS)/sane/test_%)
RACE_FREE_PROGRAMS := $(SANE_TESTS:%=$(TESTS)/races/test_%)
$(TESTS)/sane/%: SANE := $(SANITIZE)
$(TESTS)/races/%: SANE := -fsanitize=thread $(UNFORTIFIED)

define SANE_RULES
$(TESTS)/$(1)/kernels/%.o: kernels/%.c
	@mkdir -p $$(@D)
	$$(CC) -std=c11 -O1 -g $$(WARNINGS) $$(SANE) -MMD -MP -c $$< -o $$@

$(SANE_TESTS:%=$(TESTS)/$(1)/test_%): $(TESTS)/$(1)/test_%: tests/kernels/test_%.c \
  $(KERNEL_SOURCES:%.c=$(TESTS)/$(1)/%.o)
	$$(CC) $$(TEST_CFLAGS) $$(SANE) -D_XOPEN_SOURCE=700 -pthread -MMD -MP -o $$@ $$^ -lcmocka -ldl -lm
endef
$(foreach kind,sane races,$(eval $(call SANE_RULES,$(kind))))

# The same programs again, with narrower vectors than the processor has.
VECTOR_TESTS := attention attention_backward ffn norm loss optimizer embedding memcpy

# NaNs must be found also where a compiler believes that there are none.
FAST_MATH := -O3 -ffast-math
FAST_TESTS := fast_math suite_ceilings suite_optimizer
FAST_PROGRAMS := $(FAST_TESTS:%=$(TESTS)/fast/test_%) \
  $(if $(shell command -v clang),$(FAST_TESTS:%=$(TESTS)/fast-clang/test_%))

# Sources of both rooms are found by the name alone.
vpath test_%.c tests/kernels tests/suites

$(TESTS)/fast/test_%: test_%.c build/cpu/libkernels.a
	$(call LINK_WITH_KERNELS,$(CC),$(FAST_MATH))

$(TESTS)/fast-clang/test_%: test_%.c build/cpu/libkernels.a
	$(call LINK_WITH_KERNELS,clang,$(FAST_MATH))

# Programs that crash are built without the sanitizers, which would handle that themselves:
# as C, as C++ (which can throw), and for a system without /proc.
ROWS_FIXTURES := $(TESTS)/rows $(TESTS)/rows_cpp $(TESTS)/rows_no_proc
ROWS_CFLAGS := -O1 -g $(WARNINGS) $(FORTIFIED) -I. -MMD -MP
$(TESTS)/test_rows $(TESTS)/test_row_files: | $(ROWS_FIXTURES)

$(TESTS)/rows: tests/fixtures/rows.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(ROWS_CFLAGS) -o $@ $<

$(TESTS)/rows_cpp: tests/fixtures/rows.c
	@mkdir -p $(@D)
	$(CXX) -std=c++11 $(ROWS_CFLAGS) -o $@ -x c++ $<

$(TESTS)/rows_no_proc: tests/fixtures/rows_no_proc.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(ROWS_CFLAGS) -o $@ $<

# These programs have runs that --kernels and --trace watch.
TRACED_PROGRAMS := $(TESTS)/traced $(TESTS)/trace

$(TESTS)/traced: tests/fixtures/traced.c
$(TESTS)/trace: examples/trace.c
$(TRACED_PROGRAMS):
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -MMD -MP -o $@ $<

# gpubench_trace.h's CUDA half on a substitute for CUPTI, where the toolkit's headers are.
CUPTI_TEST := $(if $(wildcard $(TOOLKIT)/include/cupti.h),$(TESTS)/test_trace_cupti)
FAKE_CUPTI = $(TESTS)/cupti/lib64/libcupti.so.$(shell sed -n \
               's/^.define CUDART_VERSION *\([0-9]*\)[0-9]\{3\}$$/\1/p' $(TOOLKIT)/include/cuda_runtime_api.h)

$(TESTS)/test_trace_cupti: tests/header/test_trace_cupti.c $(wildcard tests/fake_cupti/*) gpubench_trace.h gpubench.h
	@mkdir -p $(dir $(FAKE_CUPTI))
	$(CC) $(TEST_CFLAGS) -isystem $(TOOLKIT)/include -fPIC -shared -o $(FAKE_CUPTI) tests/fake_cupti/cupti.c
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -DGPUBENCH_CUDA=1 -D_XOPEN_SOURCE=700 -isystem $(TOOLKIT)/include \
	  -o $@ $< -lcmocka -lpthread -ldl

# An MPI library in which one rank does not do as it should.
BAD_MPI := $(if $(MPI_FOUND),$(TESTS)/libbad_mpi.so)

$(TESTS)/libbad_mpi.so: tests/fixtures/bad_mpi.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(MPI_COMPILE) -fPIC -shared -o $@ $< $(MPI_LINK) -ldl

# The header's CUDA half, on a substitute for the CUDA runtime.
FAKE_CUDA_SOURCES := $(wildcard tests/fake_cuda/*.c)
FAKE_CUDA := -DGPUBENCH_CUDA=1 -DGPT_CUPTI=0 -Itests/fake_cuda $(FAKE_CUDA_SOURCES)

# A substitute for NVML under the real one's name, so that looking it up at run
# time finds this one; what it describes is the test's.
FAKE_NVML := $(TESTS)/libnvidia-ml.so.1

$(FAKE_NVML): tests/fake_nvml/nvml.c tests/fake_nvml/nvml.h
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -D_XOPEN_SOURCE=700 -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

$(TESTS)/cuda: tests/fixtures/cuda.c $(FAKE_CUDA_SOURCES) $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -o $@ $< $(FAKE_CUDA) -lpthread -ldl

# DT_RPATH comes before LD_LIBRARY_PATH, in which the true NVML may be.
$(CUDA_PROGRAMS): $(TESTS)/test_%: tests/header/test_%.c $(FAKE_CUDA_SOURCES) $(TESTS)/cuda $(FAKE_NVML) $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -rdynamic -o $@ $< $(FAKE_CUDA) -Wl,--no-as-needed $(FAKE_NVML) \
	  -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN' -lcmocka -lpthread -ldl -lm

# The memcpy suite on it, with those of its CUDA files that launch no kernel.
MEMCPY_HOST_SIDE := concurrent peer

$(MEMCPY_HOST_SIDE:%=$(TESTS)/memcpy_%.o): $(TESTS)/memcpy_%.o: kernels/memcpy/%.cu
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O1 -g -Wall -Wextra -Wno-missing-field-initializers -Werror $(SANITIZE) \
	  -Itests/fake_cuda -MMD -MP -x c++ -c $< -o $@

$(TESTS)/test_memcpy_cuda: tests/suites/test_memcpy_cuda.c suites/gpubench.c suites/suite.c suites/parallel.c suites/peaks.c \
  $(FAKE_CUDA_SOURCES) $(MEMCPY_HOST_SIDE:%=$(TESTS)/memcpy_%.o) build/cpu/libkernels.a $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -o $@ $(FAKE_CUDA) $(filter-out tests/fake_cuda/% %.h,$^) \
	  -lcmocka -lstdc++ -lpthread -ldl -lm

# The CUDA half of the suites of several ranks on it, with a substitute for NCCL.
COLLECTIVE_CUDA := $(TESTS)/collective_cuda $(TESTS)/libfake_nccl.so
SCALING_CUDA := $(TESTS)/scaling_cuda $(TESTS)/libfake_nccl.so

NCCL_HOST_SIDE := $(patsubst kernels/collective/%.cu,$(TESTS)/%.o,$(wildcard kernels/collective/*.cu))

$(NCCL_HOST_SIDE): $(TESTS)/%.o: kernels/collective/%.cu
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O1 -g -Wall -Wextra -Wno-missing-field-initializers -Werror $(FORTIFIED) -Itests/fake_cuda \
	  -MMD -MP -x c++ -c $< -o $@

$(TESTS)/libfake_nccl.so: tests/fake_nccl/nccl.c tests/fake_cuda/cuda_runtime_api.h
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -Itests/fake_cuda -fPIC -shared -o $@ $<

RANKS_SOURCES := tests/fixtures/collective_cuda.c $(wildcard suites/collective_*.c) \
  $(patsubst %,suites/%.c,launch heartbeat worker suite peaks once gpubench parallel) $(FAKE_CUDA_SOURCES)

$(TESTS)/collective_cuda: suites/collective.c
$(TESTS)/scaling_cuda: tests/fixtures/scaling_cuda.c $(wildcard suites/scaling*.c)
$(TESTS)/collective_cuda $(TESTS)/scaling_cuda: $(RANKS_SOURCES) \
  $(NCCL_HOST_SIDE) build/cpu/libkernels.a $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -rdynamic -o $@ $(FAKE_CUDA) $(MPI_COMPILE) \
	  $(filter-out tests/fake_cuda/% %.h %.a,$^) build/cpu/libkernels.a $(MPI_LINK) -lstdc++ -lpthread -ldl -lm

$(TESTS)/test_device: tests/kernels/test_device.cpp
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O1 -g -Wall -Wextra -Werror $(SANITIZE) -I. -Itests/fake_cuda -MMD -MP \
	  -o $@ $< -lcmocka

COMPARE_TESTS := $(patsubst tests/compare/%.c,$(TESTS)/compare/%,$(wildcard tests/compare/test_*.c))
# Those that run the program, which they take as an argument.
TOOL_TESTS := $(TESTS)/compare/test_tool $(TESTS)/compare/test_tool_reports

$(COMPARE_TESTS): $(TESTS)/compare/%: tests/compare/%.c tests/compare/schema_text.c $(COMPARE_LIBRARY) \
  $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) -std=c11 $(CFLAGS) -O2 $(FORTIFIED) $(WARNINGS) -o $@ $(filter-out %.h,$^) $(WRAPPED) -lcmocka -lm

# This one makes allocations fail.
$(TESTS)/compare/test_starved: WRAPPED := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

# A race's programs: one that does as told, one that is built on gpubench.h.
RACE_PROGRAMS := $(TESTS)/racer $(TESTS)/first

$(TESTS)/racer: tests/fixtures/racer.c tests/compare/random.h
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -o $@ $< -lm

# These tests look at command lines from outside.
$(TESTS)/test_sweep: | $(TESTS)/sweep
$(TESTS)/test_options: | $(TESTS)/options
$(TESTS)/test_devices: | $(TESTS)/cuda

$(TESTS)/first $(TESTS)/sweep $(TESTS)/options: $(TESTS)/%: examples/%.c gpubench.h
	@mkdir -p $(@D)
	$(CC) -O1 -I. -o $@ $< -lm

TEST_NEEDS = $(TEST_PROGRAMS) $(CUPTI_TEST) $(TRACED_PROGRAMS) $(FAST_PROGRAMS) \
  $(SANE_PROGRAMS) $(RACE_FREE_PROGRAMS) $(COMPARE_TESTS) $(COMPARE) $(RACE_PROGRAMS) \
  $(BUILD)/norm $(BUILD)/model $(TESTS)/model_weights build/cpu/collective build/cpu/scaling \
  $(BAD_MPI) $(COLLECTIVE_CUDA) $(SCALING_CUDA)

# What PyTorch's model is held against, where there is PyTorch.
$(TESTS)/model_weights: tests/fixtures/model_weights.c build/cpu/libkernels.a
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -MMD -MP -pthread -o $@ $< build/cpu/libkernels.a -ldl -lm

# Built by all processors, and run one after the other.
.PHONY: compile-tests test-programs
compile-tests:
	$(COMPILE) test-programs

test-programs: $(TEST_NEEDS)

# What takes times, or is held to limits of time, has the machine to itself.
FORMULA_TESTS = $(KERNEL_TESTS:%=$(TESTS)/test_%)
TIMED_TESTS = $(filter-out $(FORMULA_TESTS),$(TEST_PROGRAMS)) $(FAST_PROGRAMS) \
  "tests/suites/test_collective.sh build/cpu/collective $(TESTS)/libbad_mpi.so" \
  "tests/suites/test_scaling.sh build/cpu/scaling $(TESTS)/libbad_mpi.so" \
  "tests/suites/test_collective_nccl.sh $(COLLECTIVE_CUDA)" \
  "tests/suites/test_scaling_nccl.sh $(SCALING_CUDA)" \
  "tests/suites/test_ranks_nccl.sh $(TESTS)/collective_cuda $(SCALING_CUDA)" \
  "tests/header/test_trace.sh $(TRACED_PROGRAMS)" $(if $(CUPTI_TEST),"$(CUPTI_TEST) $(TESTS)/cupti") \
  tests/scripts/test_scripts.sh tests/scripts/test_fleet.sh tests/scripts/test_examples.sh \
  "tests/suites/test_cpu_rows.sh $(BUILD)/norm" "tests/scripts/test_memory.sh $(BUILD)/model" "tests/scripts/test_findings.sh $(BUILD)/model" \
  "tests/compare/test_race.sh $(RACE_PROGRAMS)" "tests/compare/test_race_revision.sh $(TESTS)/racer"

UNTIMED_TESTS = tests/header/test_compilers.sh tests/header/test_header.sh $(FAULT_TESTS) \
  $(FORMULA_TESTS) $(SANE_PROGRAMS) $(RACE_FREE_PROGRAMS:%="env GPUBENCH_BLAS=none %") \
  $(foreach family,sse2 avx2,$(VECTOR_TESTS:%="env GPUBENCH_SIMD=$(family) $(TESTS)/test_%")) \
  $(filter-out $(TOOL_TESTS),$(COMPARE_TESTS)) $(TOOL_TESTS:%="% $(COMPARE)") \
  "tests/compare/test_plots.sh $(COMPARE)" "tests/compare/test_report.sh $(COMPARE)" \
  "tests/scripts/test_injection.sh $(COMPARE)" "tests/scripts/test_bounded.sh $(COMPARE)" \
  $(if $(shell command -v python3),tests/compare/test_pytorch.py) \
  $(patsubst %,tests/scripts/test_%.sh,readme timeline kernel_sums makefile reader sizes install \
    peers peers_model peers_cpu host_peers compare) "tests/scripts/test_locale.sh $(COMPARE)" \
  tests/kernels/test_blas.sh tests/kernels/test_dtypes.sh tests/gpu/truth_test.sh tests/gpu/ncu_agree_test.sh $(FUZZ_TESTS) $(LOAD_TESTS)

test: compile-tests   ## the tests that need no GPU
	tests/run.sh $(TIMED_TESTS) -- $(UNTIMED_TESTS)

check: test   ## the same

test-emulated: all   ## CPU variants as an Arm and an old x86-64 run them (qemu-user)
	tests/run.sh "tests/emulated.sh $(BUILD)"

# Every test program, and what the scripts run of the compare tool, under the sanitizers: in a
# copy of the tree, since all of its objects are others. Programs that are to crash stay as they
# are. Under the one for threads there is no BLAS library, which it does not understand.
SANITIZED_TESTS = $(TEST_PROGRAMS) $(filter-out $(SIMULATIONS) $(TOOL_TESTS),$(COMPARE_TESTS)) \
  $(TOOL_TESTS:%="% $(COMPARE)") "tests/compare/test_report.sh $(COMPARE)" \
  "tests/scripts/test_injection.sh $(COMPARE)" "tests/compare/test_race.sh $(RACE_PROGRAMS)"
THREADED_TESTS = $(KERNEL_TESTS:%=$(TESTS)/test_%) $(SUITE_TESTS:%=$(TESTS)/test_%) $(TESTS)/test_backend $(CUDA_PROGRAMS)
.PHONY: sanitized sanitized-threads run-sanitized run-threaded
SANITIZED = @rm -rf build/$(1) && mkdir -p build/$(1) && cp -R Makefile mk *.h kernels suites compare examples scripts docs baselines README.md tests build/$(1) && \
  $(MAKE) --no-print-directory -C build/$(1) BACKEND=cpu GIT=none SANITIZE='$(2)' FORTIFIED=$(UNFORTIFIED) CFLAGS='-O1 -g $(2)' \
  LDFLAGS='$(2)' TEST_CFLAGS='-std=c11 -O1 -g -I. -Itests $(2)' $(3)

sanitized:   ## the test programs, all of it under the address, leak and undefined-behaviour sanitizers
	$(call SANITIZED,sanitized,$(SANITIZE),run-sanitized)

sanitized-threads:   ## those with threads under the thread sanitizer
	$(call SANITIZED,threads,-fsanitize=thread $(UNFORTIFIED),run-threaded)

run-sanitized: $(TEST_PROGRAMS) $(COMPARE_TESTS) $(COMPARE) $(RACE_PROGRAMS)
	tests/run.sh $(SANITIZED_TESTS)

run-threaded: $(THREADED_TESTS)
	GPUBENCH_BLAS=none tests/run.sh $(THREADED_TESTS)

# This is no test: its sources come from GitHub, and a busy host has no say in a verdict.
PEERS_ROUNDS ?= 5
peers:   ## the same host benchmarks by Google Benchmark, nanobench and ubench.h (PEERS_ROUNDS=5)
	tests/peers/host.sh $(PEERS_ROUNDS)

# Lines of the code are broken one at a time: which does no test notice? The tests' objects
# are made once, and linked with each mutant.
MUTANTS ?= 600
SEED ?= 1
MUTATED ?=
MUTANT_TESTS := $(sort $(shell sed -n '/^[^\#]/s/^[^ ]* //p' tests/mutation/files.txt; \
  sed -n '/^[^\#]/s/	.*//p' tests/mutation/broken.txt)) compare/schema_text
MUTANT_NEEDS = $(COMPARE) build/cpu/libkernels.a $(MUTANT_TESTS:%=build/mutants/%.o)

build/mutants/%.o: tests/%.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -O1 -w -D_XOPEN_SOURCE=700 -I. -Itests -MMD -MP -c $< -o $@

mutants: $(MUTANT_NEEDS)   ## break MUTANTS=600 lines, drawn by SEED=1, and tell which no test notices (MUTATED=FILES)
	CC='$(CC)' tests/mutation/mutants.sh $(MUTANTS) $(SEED) $(MUTATED)

broken: $(MUTANT_NEEDS)   ## break what twenty tests guard: each has to fail
	CC='$(CC)' tests/mutation/broken.sh
