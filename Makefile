# gpubench: every task is a target; `make help` lists them.
#
# BACKEND=auto  cuda where nvcc and a GPU are there, else cpu
# Build results go to build/, measurements to results/.

SHELL := /bin/sh
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

SUITES := attention block ceilings embedding ffn loss memcpy model norm optimizer

CC ?= cc
CFLAGS ?= -O3
WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
# Of kernels and suites: a switch names every dtype, so that a new one is seen.
EXHAUSTIVE := -Wswitch-enum
BACKEND ?= auto
ARCH ?=
ARGS ?=
RUNS ?=
FORCE ?= 0
export FORCE
LDFLAGS ?=
PREFIX ?= /usr/local
DESTDIR ?=
VERSION = $(shell sed -n 's/^.define GPUBENCH_VERSION "\(.*\)"/\1/p' gpubench.h)

# Processes: of a plain measurement, of a baseline's campaign, of PyTorch's, of a
# comparison.
SUITE_RUNS := $(or $(RUNS),1)
BASELINE_RUNS := $(or $(RUNS),5)
TORCH_RUNS := $(or $(RUNS),3)
COMPARE_RUNS := $(or $(RUNS),3)
# Of this tree's own repository: it may be unpacked inside another one. Only the command
# line sets it otherwise, as a variable GIT in the environment is somebody else's.
GIT := $(if $(wildcard .git),$(shell git describe --always --dirty 2>/dev/null))

# ---- the toolkit: NVCC, then CUDA_HOME, PATH, /usr/local/cuda

CUDA_HOME ?=
NVCC ?= $(firstword $(wildcard $(addsuffix /bin/nvcc,$(CUDA_HOME))) \
          $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
NVCC_FOUND := $(shell command -v $(NVCC) 2>/dev/null)
TOOLKIT := $(if $(NVCC_FOUND),$(patsubst %/bin/nvcc,%,$(shell realpath $(NVCC_FOUND))))

# Compute capabilities of the GPUs that are here, without dots: only lines that
# are nothing but a number count, whatever else the query tool prints.
GPUS := $(sort $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null \
          | sed -n 's/^ *\([0-9][0-9]*\)\.\([0-9]\) *$$/\1\2/p'))

ifeq ($(BACKEND),auto)
  override BACKEND := $(if $(and $(NVCC_FOUND),$(GPUS)),cuda,cpu)
endif
ifeq ($(filter $(BACKEND),cpu cuda),)
  $(error BACKEND=$(BACKEND): wants auto, cpu or cuda)
endif

BUILD := build/$(BACKEND)

# ---- what to build for: ARCH by hand ("80 90a"), else the GPUs that are here,
# else a set that includes PTX, from which the driver compiles for any other

ifeq ($(BACKEND),cuda)
  ifeq ($(NVCC_FOUND),)
    $(error BACKEND=cuda needs nvcc, and there is none: set NVCC or CUDA_HOME)
  endif
  ifneq ($(word 2,$(CUDA_HOME)),)
    $(error CUDA_HOME=$(CUDA_HOME): make takes no path with a blank; use a link to it that has none)
  endif
  ifneq ($(and $(CUDA_HOME),$(if $(wildcard $(CUDA_HOME)/bin/nvcc),,none)),)
    $(error CUDA_HOME=$(CUDA_HOME): no bin/nvcc there)
  endif
  # What the toolkit knows, and each with the architecture-specific suffix.
  PLAIN := $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code 2>/dev/null))
  KNOWN := $(PLAIN) $(PLAIN:%=%a)
  ifneq ($(filter-out $(KNOWN),$(GPUS)),)
    $(info No code for compute capability $(filter-out $(KNOWN),$(GPUS)): $(NVCC) does not know it)
  endif
  # 9.0 has instructions that only the target sm_90a may use.
  ARCHS := $(if $(ARCH),$(ARCH),$(patsubst 90,90a,$(filter $(KNOWN),$(GPUS))))
  UNKNOWN := $(filter-out $(KNOWN),$(ARCHS))
  ifneq ($(UNKNOWN),)
    $(error ARCH: $(NVCC) does not know '$(UNKNOWN)'; it knows $(KNOWN))
  endif
  GENCODE := $(foreach a,$(ARCHS),-gencode arch=compute_$(a),code=sm_$(a))
  ifeq ($(ARCHS),)
    $(info No GPU tells what to build for: building for sm_80, sm_90a and PTX (ARCH= overrides))
    GENCODE := -gencode arch=compute_80,code=[sm_80,compute_80] \
               -gencode arch=compute_90a,code=sm_90a
  endif
  # Tables name their rows' members, and leave out those that are 0.
  NVCCFLAGS := -std=c++17 -O3 -lineinfo $(GENCODE) -Werror all-warnings \
               -Xcompiler -Wall,-Wextra,-Werror,-Wswitch-enum,-Wno-missing-field-initializers
  CUDA_CFLAGS := -DGPUBENCH_CUDA=1 -isystem $(TOOLKIT)/include
  CUDA_OBJECTS := $(patsubst %.cu,$(BUILD)/%.cu.o,$(wildcard kernels/*/*.cu))
  # nvcc takes commas as the end of what it is to hand on.
  COMMA := ,
  NVCC_LDFLAGS = $(foreach flag,$(LDFLAGS),-Xcompiler '$(subst $(COMMA),\$(COMMA),$(flag))')
  LINK = $(NVCC) $(GENCODE) $(NVCC_LDFLAGS) -o $@ $^ -lcublas -lcublasLt -lcurand -ldl -lpthread -lm
else
  LINK = $(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ -lm
endif

OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard kernels/*/*.c)) $(CUDA_OBJECTS)
SUITE_PROGRAMS := $(SUITES:%=$(BUILD)/%)
COMPILER := $(shell $(CC) --version 2>/dev/null | sed -n 1p)$(if $(CUDA_OBJECTS), + $(shell \
              $(NVCC) --version 2>/dev/null | sed -n 's/.*release.*\(V[0-9.]*\).*/nvcc \1/p'))

# The compare tool: plain C, without any of the rest.
COMPARE := build/gpubench-compare

.PHONY: all readme suites baselines torch-baselines compare plots block-parts report test test-gpu \
  install uninstall dist test-truth gpu-tests arch-matrix planted fuzz deps deps-ci help clean \
  $(foreach task,suite baseline compare race plot,$(SUITES:%=$(task)-%)) \
  $(foreach task,compile program,$(task)-all $(SUITES:%=$(task)-%)) FORCE

all: $(SUITE_PROGRAMS) build/gpubench-compare   ## build the suites and the compare tool

# Compiling takes every processor unless -j says otherwise. Measuring is one
# after the other, also under -j: two at a time would disturb each other.
JOBS := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
COMPILE = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) \
  BACKEND=$(BACKEND)
ifneq ($(filter suites baselines compare suite-% baseline-% compare-% race-%,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

# A suite that fails does not keep the next from being measured.
define ONE_BY_ONE
	@failed=0; for suite in $(SUITES); do \
	  $(MAKE) --no-print-directory $(1)-$$suite || failed=1; \
	done; exit $$failed
endef

compile-all:
	$(COMPILE) program-all

program-all: $(SUITE_PROGRAMS) $(COMPARE)
	@:

suites: compile-all   ## measure every suite
	$(call ONE_BY_ONE,suite)

baselines: compile-all   ## measure every suite as a campaign of this device's baselines
	$(call ONE_BY_ONE,baseline)

torch-baselines:   ## measure PyTorch as a campaign of this device's baselines
	GIT='$(GIT)' sh scripts/torch-baselines.sh $(TORCH_RUNS) $(ARGS)

compare: compile-all   ## measure every suite and judge it against the baselines
	$(call ONE_BY_ONE,compare)

# What scripts/race.sh, which compare.sh calls too, builds the older revision with.
RACE_ENVIRONMENT = BACKEND=$(BACKEND) ARCH='$(ARCH)' CFLAGS='$(CFLAGS)' CC='$(CC)' \
  NVCC='$(NVCC)' CUDA_HOME='$(CUDA_HOME)' JOBS=$(JOBS)

# What a suite's program is linked with beside its own object.
SUITE_LINKS = $(patsubst %,$(BUILD)/suites/%.o,suite once part_check part_check_heads parallel) \
  $(BUILD)/libkernels.a
# The other files of a suite: its name, an underscore, what is in them.
SUITE_PARTS = $(patsubst %.c,$(BUILD)/%.o,$(wildcard suites/$(1)_*.c))

define SUITE_RULES
compile-$(1):
	$$(COMPILE) program-$(1)

program-$(1): $(BUILD)/$(1) $(COMPARE)
	@:

suite-$(1): compile-$(1)
	@mkdir -p results
	$(BUILD)/$(1) --csv results/$(1).csv --runs $(SUITE_RUNS) $(ARGS)

baseline-$(1): compile-$(1)
	sh scripts/baseline.sh $(BUILD)/$(1) $(1) $(BASELINE_RUNS) $(ARGS)

compare-$(1): compile-$(1)
	$$(RACE_ENVIRONMENT) sh scripts/compare.sh $(BUILD)/$(1) $(1) $(COMPARE_RUNS) $(ARGS)

race-$(1): compile-$(1)
	$$(RACE_ENVIRONMENT) \
	  sh scripts/race.sh $(BUILD)/$(1) $(1) $(if $(REV),--rev '$(REV)') -- $(ARGS)

$(BUILD)/$(1): $(BUILD)/suites/$(1).o $(call SUITE_PARTS,$(1)) $(SUITE_LINKS)
	$$(LINK)
endef
$(foreach s,$(SUITES),$(eval $(call SUITE_RULES,$(s))))

# Appended to nothing: a variant's file has the same name in many an operation's
# folder, and members of one name would replace each other.
$(BUILD)/libkernels.a: $(OBJECTS)
	rm -f $@
	$(AR) qcs $@ $^

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) -std=c11 $(CFLAGS) $(WARNINGS) $(EXHAUSTIVE) $(CUDA_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/%.cu.o: %.cu $(BUILD)/flags
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

# The one object that knows the revision and the compilers, for the CSV.
$(BUILD)/suites/suite.o: CUDA_CFLAGS += \
  '-DGPUBENCH_GIT="$(GIT)"' '-DGPUBENCH_COMPILER="$(COMPILER)"'
$(BUILD)/suites/suite.o: $(BUILD)/revision

# Written only when its content changes, so that what depends on it is rebuilt then.
define WRITE_IF_CHANGED
	@mkdir -p $(@D)
	@printf '%s\n' '$(1)' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
endef

$(BUILD)/revision: FORCE
	$(call WRITE_IF_CHANGED,$(GIT))

$(BUILD)/flags: FORCE
	$(call WRITE_IF_CHANGED,$(CC) $(CFLAGS) $(EXHAUSTIVE) $(NVCC_FOUND) $(NVCCFLAGS) $(CUDA_CFLAGS))

# ---- tests

# Kernels on the CPU against their oracles, what suites share: tests/test_<name>.c.
KERNEL_TESTS := inputs suite attention attention_backward block ceilings embedding ffn loss norm \
  model optimizer parallel part suite_block suite_model suite_optimizer suite_ceilings
# gpubench.h, through programs in tests/fixtures/.
HEADER_TESTS := statistics csv command_line engine verification samples host rows table
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
TEST_PROGRAMS := $(KERNEL_TESTS:%=$(TESTS)/test_%) $(HEADER_TESTS:%=$(TESTS)/test_%) \
  $(TESTS)/test_cuda_path $(TESTS)/test_memcpy_cuda $(TESTS)/test_device $(MOVED_PROGRAMS)
TEST_CFLAGS := -std=c11 -O1 -g $(WARNINGS) -I. -Itests
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all

# For what is built from several sources at once: of these -MMD knows the last.
TEST_HEADERS := $(wildcard gpubench.h kernels/*/*.h suites/*.h compare/*.h tests/*.h tests/*/*.h)

$(KERNEL_TESTS:%=$(TESTS)/test_%): $(TESTS)/test_%: tests/test_%.c build/cpu/libkernels.a
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -D_XOPEN_SOURCE=700 -pthread -MMD -MP -o $@ $< build/cpu/libkernels.a \
	  -lcmocka -lm

# Suites with their tables of variants turned around.
$(MOVED_PROGRAMS): $(TESTS)/test_moved_rows_%: tests/test_moved_rows.c $(wildcard suites/*.c) \
  build/cpu/libkernels.a $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -D_XOPEN_SOURCE=700 '-DSUITE_FILE="../suites/$*.c"' \
	  '-DSHAPE="$(SHAPE_$*)"' -pthread -o $@ $< $(wildcard suites/$*_*.c) \
	  suites/part_check.c suites/part_check_heads.c build/cpu/libkernels.a -lcmocka -lm

# The CPU's kernels, also when the backend is CUDA.
ifneq ($(BACKEND),cpu)
build/cpu/libkernels.a: FORCE
	$(MAKE) BACKEND=cpu $@
endif

$(HEADER_TESTS:%=$(TESTS)/test_%): $(TESTS)/test_%: tests/test_%.c $(TESTS)/host
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -MMD -MP -o $@ $< -lcmocka -lm

$(TESTS)/host: tests/fixtures/host.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -MMD -MP -o $@ $<

# What must not pass where a compiler believes that there are no NaNs.
FAST_MATH := -O3 -ffast-math
FAST_TESTS := fast_math suite_ceilings suite_optimizer
FAST_PROGRAMS := $(FAST_TESTS:%=$(TESTS)/fast/test_%) \
  $(if $(shell command -v clang),$(FAST_TESTS:%=$(TESTS)/fast-clang/test_%))

$(TESTS)/fast/test_%: tests/test_%.c build/cpu/libkernels.a
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(FAST_MATH) -D_XOPEN_SOURCE=700 -pthread -MMD -MP -o $@ $< \
	  build/cpu/libkernels.a -lcmocka -lm

$(TESTS)/fast-clang/test_%: tests/test_%.c build/cpu/libkernels.a
	@mkdir -p $(@D)
	clang $(TEST_CFLAGS) $(FAST_MATH) -D_XOPEN_SOURCE=700 -pthread -MMD -MP -o $@ $< \
	  build/cpu/libkernels.a -lcmocka -lm

# Without the sanitizers, which handle crashes themselves: as C, as C++ (which
# can throw), and for a system without /proc.
ROWS_FIXTURES := $(TESTS)/rows $(TESTS)/rows_cpp $(TESTS)/rows_no_proc
ROWS_CFLAGS := -O1 -g $(WARNINGS) -I. -MMD -MP
$(TESTS)/test_rows: | $(ROWS_FIXTURES)

$(TESTS)/rows: tests/fixtures/rows.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(ROWS_CFLAGS) -o $@ $<

$(TESTS)/rows_cpp: tests/fixtures/rows.c
	@mkdir -p $(@D)
	$(CXX) -std=c++11 $(ROWS_CFLAGS) -o $@ -x c++ $<

$(TESTS)/rows_no_proc: tests/fixtures/rows.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(ROWS_CFLAGS) '-DGPB_PROC_SELF="/no/proc/self"' -o $@ $<

# The header's CUDA half, on a substitute for the CUDA runtime.
FAKE_CUDA := -DGPUBENCH_CUDA=1 -Itests/fake_cuda tests/fake_cuda/fake_cuda.c

# A substitute for NVML under the real one's name, so that looking it up at run
# time finds this one; what it describes is the test's.
FAKE_NVML := $(TESTS)/libnvidia-ml.so.1

$(FAKE_NVML): tests/fake_nvml/nvml.c tests/fake_nvml/nvml.h
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -D_XOPEN_SOURCE=700 -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

$(TESTS)/cuda: tests/fixtures/cuda.c tests/fake_cuda/fake_cuda.c $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -o $@ $< $(FAKE_CUDA) -lpthread -ldl

$(TESTS)/test_cuda_path: tests/test_cuda_path.c tests/fake_cuda/fake_cuda.c $(TESTS)/cuda $(FAKE_NVML) $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -rdynamic -o $@ $< $(FAKE_CUDA) -Wl,--no-as-needed $(FAKE_NVML) \
	  -Wl,-rpath,'$$ORIGIN' -lcmocka -lpthread -ldl -lm

# The memcpy suite on it, with those of its CUDA files that launch no kernel.
MEMCPY_HOST_SIDE := concurrent peer

$(MEMCPY_HOST_SIDE:%=$(TESTS)/memcpy_%.o): $(TESTS)/memcpy_%.o: kernels/memcpy/%.cu
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O1 -g -Wall -Wextra -Wno-missing-field-initializers -Werror $(SANITIZE) \
	  -Itests/fake_cuda -MMD -MP -x c++ -c $< -o $@

$(TESTS)/test_memcpy_cuda: tests/test_memcpy_cuda.c suites/suite.c suites/parallel.c \
  tests/fake_cuda/fake_cuda.c $(MEMCPY_HOST_SIDE:%=$(TESTS)/memcpy_%.o) build/cpu/libkernels.a $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -o $@ $(FAKE_CUDA) $(filter-out tests/fake_cuda/% %.h,$^) \
	  -lcmocka -lstdc++ -lpthread -ldl -lm

$(TESTS)/test_device: tests/test_device.cpp
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O1 -g -Wall -Wextra -Werror $(SANITIZE) -I. -Itests/fake_cuda -MMD -MP \
	  -o $@ $< -lcmocka

COMPARE_OBJECTS := $(patsubst %.c,build/%.o,$(wildcard compare/*.c))
COMPARE_LIBRARY := $(filter-out build/compare/main.o,$(COMPARE_OBJECTS))
COMPARE_TESTS := $(patsubst tests/compare/%.c,$(TESTS)/compare/%,$(wildcard tests/compare/test_*.c))

build/compare/flags: FORCE
	$(call WRITE_IF_CHANGED,$(CC) $(CFLAGS) $(LDFLAGS))

build/compare/%.o: compare/%.c build/compare/flags
	@mkdir -p $(@D)
	$(CC) -std=c11 $(CFLAGS) $(WARNINGS) -MMD -MP -c $< -o $@

$(COMPARE): $(COMPARE_OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm

$(COMPARE_TESTS): $(TESTS)/compare/%: tests/compare/%.c tests/compare/schema_text.c $(COMPARE_LIBRARY) \
  $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) -std=c11 $(CFLAGS) -O2 $(WARNINGS) -o $@ $(filter-out %.h,$^) -lcmocka -lm

# A race's programs: one that does as told, one that is built on gpubench.h.
RACE_PROGRAMS := $(TESTS)/racer $(TESTS)/first

$(TESTS)/racer: tests/fixtures/racer.c tests/compare/random.h
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -o $@ $< -lm

$(TESTS)/first: examples/first.c gpubench.h
	@mkdir -p $(@D)
	$(CC) -O1 -I. -o $@ $< -lm

test: $(TEST_PROGRAMS) $(FAST_PROGRAMS) $(COMPARE_TESTS) $(COMPARE) $(RACE_PROGRAMS) ## the tests that need no GPU
	tests/run.sh $(TEST_PROGRAMS) $(FAST_PROGRAMS) $(filter-out %/test_tool,$(COMPARE_TESTS)) \
	  "$(TESTS)/compare/test_tool $(COMPARE)" "tests/test_plots.sh $(COMPARE)" \
	  "tests/test_report.sh $(COMPARE)" \
	  tests/test_header.sh tests/test_compilers.sh tests/test_readme.sh tests/test_scripts.sh \
	  tests/test_makefile.sh tests/test_dtypes.sh tests/test_install.sh tests/gpu/truth_test.sh \
	  "tests/test_race.sh $(RACE_PROGRAMS)" "tests/test_race_revision.sh $(TESTS)/racer" \
	  $(if $(shell command -v python3),tests/test_pytorch.py)

# Every GPU that the kernels are to be compiled for: one after the other, because
# -j belongs to the compiling of each.
MATRIX := 75 80 86 89 90a 100 120
arch-matrix:   ## compile every kernel and link a suite for each of MATRIX="75 80 86 89 90a 100 120"
	@built= failed=; for arch in $(MATRIX); do \
	  folder=build/arch-$$arch; \
	  if $(MAKE) --no-print-directory BACKEND=cuda ARCH=$$arch BUILD=$$folder $$folder/attention; \
	  then built="$$built $$arch"; else failed="$$failed $$arch"; fi; \
	done; \
	echo "arch-matrix: built for$${built:- none}$${failed:+, failed for$$failed}"; \
	[ -z "$$failed" ]

GPU_TESTS := four_cases guards launches truth
$(BUILD)/tests/launches: GPU_TEST_LIBRARIES := -lcublas
$(BUILD)/tests/%: tests/gpu/%.cu $(BUILD)/flags
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -MMD -MP -MF $@.d -o $@ $< $(GPU_TEST_LIBRARIES) -ldl -lpthread

gpu-tests: all planted $(GPU_TESTS:%=$(BUILD)/tests/%)   ## build what test-gpu and planted.sh run

test-gpu: gpu-tests   ## what only a GPU can test
	tests/run.sh "tests/gpu/run.sh $(BUILD)"

# Without a GPU the script says so, and ends with 2.
test-truth: $(if $(filter cuda,$(BACKEND)),$(BUILD)/tests/truth)   ## the cold numbers against Nsight Compute's, as a table
	tests/gpu/truth.sh $(BUILD)/tests/truth

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

FUZZ_SECONDS ?= 600
build/fuzz/csv: tests/compare/fuzz_csv.c $(filter-out compare/main.c,$(wildcard compare/*.c))
	@mkdir -p $(@D)
	clang -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o $@ $^ -lm

# Starts from rows of the baselines; what else it finds stays in build/fuzz/corpus.
fuzz: build/fuzz/csv   ## fuzz the reading of CSV files (clang)
	@mkdir -p build/fuzz/corpus
	for file in baselines/*/*.csv; do head -4 "$$file" > build/fuzz/corpus/$$(basename "$$file"); done
	cd build/fuzz && ./csv -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 corpus

# cmocka: the test framework. gnuplot: the plots. patch: the planted slowdown.
PACKAGES := libcmocka-dev gnuplot-nox patch
# The compilers of tests/test_compilers.sh, which skips those that are missing.
# gcc-multilib would exclude the compilers for other processors, so i686 is one.
deps-ci: PACKAGES += g++ clang musl-tools gcc-i686-linux-gnu libc6-dev-i386-cross \
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross
deps-ci: deps   ## what deps does, and every compiler that the tests can use
deps:   ## install what tests and plots need (apt; sudo if not root)
	@if command -v apt-get > /dev/null; then \
	  sudo=; [ "$$(id -u)" = 0 ] || { command -v sudo > /dev/null && sudo=sudo; }; \
	  dpkg -s $(PACKAGES) > /dev/null 2>&1 || \
	    { $$sudo apt-get update && $$sudo apt-get install -y --no-install-recommends $(PACKAGES); }; \
	else echo 'deps: no apt-get here; install cmocka with its headers, gnuplot and patch'; fi

# Without those of other revisions, which races build.
-include $(shell find build -path build/race -prune -o -name '*.d' -print 2>/dev/null)

# ---- pictures of results/

PLOTS := results/plots

$(SUITES:%=plot-%): plot-%:
	@mkdir -p $(PLOTS)
	compare/plots/size.sh $(PLOTS)/$* results/$*.csv

plot-block: block-parts
block-parts:
	@mkdir -p $(PLOTS)
	compare/plots/parts.sh $(PLOTS)/block-parts results/block.csv

plots: $(COMPARE)   ## plots of what is in results/ as SVG and PNG, into results/plots/
	@scripts/plots.sh $(PLOTS) results $(SUITES)

report: $(COMPARE)   ## results/ as one HTML page, with verdicts where a baseline is
	folder=$$(sh scripts/device-folder.sh $(firstword $(wildcard results/*.csv))); \
	[ -d "$$folder" ] || folder=; \
	scripts/report.sh results/report.html results $${folder:+"$$folder"}

readme: $(COMPARE)   ## write the README's numbers anew from baselines/
	@mkdir -p build
	for folder in baselines/*/; do \
	  scripts/readme.sh "$${folder%/}" > build/tables.new && mv build/tables.new "$${folder}README.md" || exit 1; \
	done
	scripts/readme.sh > build/README.new
	mv build/README.new README.md

# ---- taking it along

MANUAL := build/gpubench-compare.1

$(MANUAL): $(COMPARE) scripts/manual.sh gpubench.h
	sh scripts/manual.sh $(COMPARE) $(VERSION) > $@

# Through the environment: there blanks and quotes in them mean nothing.
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export DESTDIR := $(DESTDIR)
install: $(COMPARE) $(MANUAL)   ## header, compare tool, manual, pkg-config and CMake files into DESTDIR and PREFIX
	sh scripts/install.sh install $(VERSION)

uninstall:   ## remove what install put there
	sh scripts/install.sh uninstall $(VERSION)

# The header is the release; the archive has what explains it beside it.
RELEASE = gpubench-$(VERSION)
dist:   ## a release: build/dist/gpubench-VERSION.h and .tar.gz
	rm -rf build/dist
	mkdir -p build/dist/$(RELEASE)
	cp gpubench.h build/dist/$(RELEASE).h
	cp -R gpubench.h LICENSE README.md examples build/dist/$(RELEASE)
	tar -C build/dist -czf build/dist/$(RELEASE).tar.gz $(RELEASE)
	rm -r build/dist/$(RELEASE)

help:   ## this list
	@sed -n 's/^\([a-z-]*\):.*##  */  make \1: /p' $(firstword $(MAKEFILE_LIST))
	@printf '  make %s: build and measure one suite into results/\n' $(SUITES:%=suite-%)
	@echo '  make baseline-SUITE, compare-SUITE, plot-SUITE: the same of one suite'
	@echo '  make race-SUITE [REV=...]: race one suite against the revision of its baseline, or REV'
	@echo 'variables: BACKEND=auto|cpu|cuda ARCH="80 90a" MATRIX="75 90a" NVCC= CUDA_HOME= CC='
	@echo '  ARGS="--help" RUNS=5 FORCE=1 FUZZ_SECONDS=600 PREFIX=/usr/local DESTDIR= LDFLAGS='

clean:   ## remove build/ (results/ stays)
	for tree in build/race/*/tree; do \
	  [ ! -e "$$tree" ] || git worktree remove --force --force "$$tree" || true; \
	done
	rm -rf build
