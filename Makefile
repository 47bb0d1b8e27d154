# gpubench: every task is a target; `make help` lists them.
#
# BACKEND=auto  cuda where nvcc and a GPU are there, else cpu
# Build results go to build/, measurements to results/.

SHELL := /bin/sh
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
# awk and sort follow the user's locale, which may want a comma for the point and order names
# in another way, and cd goes where CDPATH says; so every script says this too.
export LC_ALL := C
export CDPATH :=

SUITES := attention block ceilings collective embedding ffn loss memcpy model norm optimizer scaling
# Those without a CUDA variant: there a program without a case to measure would fail.
CPU_SUITES := rope

CC ?= cc
CFLAGS ?= -O3
WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
# Kernels and suites are compiled with it: their switches name every dtype, so that
# the compiler shows where a new one is missing.
EXHAUSTIVE := -Wswitch-enum
# Ubuntu's gcc defines _FORTIFY_SOURCE by itself, Debian's does not, and with it gcc sees more
# to warn of and libc checks sizes while it runs. So that both see and measure the same, what
# is measured has none, unless CFLAGS, which come later, define it; tests have it.
UNFORTIFIED := -U_FORTIFY_SOURCE
FORTIFIED := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
BACKEND ?= auto
ARCH ?=
ARGS ?=
RUNS ?=
# What starts a suite of several ranks: "mpirun -np 4", "srun -n 4".
LAUNCH ?=
FORCE ?= 0
export FORCE
LDFLAGS ?=
PREFIX ?= /usr/local
DESTDIR ?=
VERSION = $(shell sed -n 's/^.define GPUBENCH_VERSION "\(.*\)"/\1/p' gpubench.h)

# How many processes measure: for a plain measurement, for a campaign of a baseline, for
# one of PyTorch's, and for a comparison.
SUITE_RUNS := $(or $(RUNS),1)
BASELINE_RUNS := $(or $(RUNS),5)
TORCH_RUNS := $(or $(RUNS),6)
COMPARE_RUNS := $(or $(RUNS),3)
# The revision of this tree's own repository, since the tree may be unpacked inside another
# one. A variable GIT of the environment is somebody else's: only the command line sets it.
GIT := $(if $(wildcard .git),$(shell git describe --always --dirty 2>/dev/null))

# ---- the toolkit is looked for in NVCC, CUDA_HOME, PATH and /usr/local/cuda, in this order

CUDA_HOME ?=
NVCC ?= $(firstword $(wildcard $(addsuffix /bin/nvcc,$(CUDA_HOME))) \
          $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
NVCC_FOUND := $(shell command -v $(NVCC) 2>/dev/null)
TOOLKIT := $(if $(NVCC_FOUND),$(patsubst %/bin/nvcc,%,$(shell realpath $(NVCC_FOUND))))

# Compute capabilities of the GPUs that are here, without dots.
GPUS := $(sort $(shell sh scripts/gpus.sh))

ifeq ($(BACKEND),auto)
  override BACKEND := $(if $(and $(NVCC_FOUND),$(GPUS)),cuda,cpu)
endif
ifeq ($(filter $(BACKEND),cpu cuda),)
  $(error BACKEND=$(BACKEND): wants auto, cpu or cuda)
endif

BUILD := build/$(BACKEND)

ifeq ($(BACKEND),cpu)
  SUITES += $(CPU_SUITES)
endif

# ---- what to build for: what ARCH says ("80 90a"); without it the GPUs that are here; and
# without one a set that includes PTX, from which the driver compiles for any other

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
  NVCCFLAGS := -std=c++17 -O3 $(UNFORTIFIED) -lineinfo $(GENCODE) -Werror all-warnings \
               -Xcompiler -Wall,-Wextra,-Werror,-Wswitch-enum,-Wno-missing-field-initializers
  CUDA_CFLAGS := -DGPUBENCH_CUDA=1 -isystem $(TOOLKIT)/include
  CUDA_OBJECTS := $(patsubst %.cu,$(BUILD)/%.cu.o,$(wildcard kernels/*/*.cu))
  # nvcc takes commas as the end of what it is to hand on.
  COMMA := ,
  NVCC_LDFLAGS = $(foreach flag,$(LDFLAGS),-Xcompiler '$(subst $(COMMA),\$(COMMA),$(flag))')
  LINK = $(NVCC) $(GENCODE) $(NVCC_LDFLAGS) -o $@ $^ -lcublas -lcublasLt -lcurand -ldl -lpthread -lm
else
  LINK = $(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ -ldl -lm
endif

# ---- MPI, for suites whose ranks are processes: MPI=0 leaves it out, MPI=1 insists on it

MPI ?= auto
MPICC ?= mpicc
MPI_FOUND := $(if $(filter 0,$(MPI)),,$(shell command -v $(MPICC) 2>/dev/null))
ifeq ($(MPI)$(MPI_FOUND),1)
  $(error MPI=1 needs $(MPICC), and there is none: install Open MPI or MPICH, or set MPICC)
endif
# Open MPI's compiler shows what it adds, MPICH's the whole command.
MPI_COMPILE = $(if $(MPI_FOUND),-DKERNEL_MPI=1 $(filter -I% -D%,$(shell $(MPICC) -show 2>/dev/null)))
MPI_LINK = $(if $(MPI_FOUND),$(filter -L% -l%,$(shell $(MPICC) -show 2>/dev/null)))

OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard kernels/*/*.c)) $(CUDA_OBJECTS)
SUITE_PROGRAMS := $(SUITES:%=$(BUILD)/%)
COMPILER := $(shell $(CC) --version 2>/dev/null | sed -n 1p)$(if $(CUDA_OBJECTS), + $(shell \
              $(NVCC) --version 2>/dev/null | sed -n 's/.*release.*\(V[0-9.]*\).*/nvcc \1/p'))

# The compare tool is plain C, and needs nothing of the rest.
COMPARE := build/gpubench-compare

.PHONY: all readme suites habits baselines torch-baselines compare plots block-parts report test check test-gpu \
  install uninstall dist test-emulated test-truth check-kernels memory-model watch gpu-tests arch-matrix planted fuzz fuzz-afl faults load mutants broken peers deps deps-ci deps-lint help clean \
  lint coverage measure-coverage format peers-model study-warmup \
  $(foreach task,suite kernels fleet baseline compare race plot,$(SUITES:%=$(task)-%)) \
  compile-all program-all $(foreach task,compile alone program,$(SUITES:%=$(task)-%)) FORCE

all: $(SUITE_PROGRAMS) build/gpubench-compare   ## build the suites and the compare tool

# Compiling takes every processor unless -j says otherwise. Measuring is one
# after the other, also under -j: two at a time would disturb each other.
JOBS := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
COMPILE = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) \
  BACKEND=$(BACKEND)
ifneq ($(filter suites habits watch check-kernels baselines compare suite-% kernels-% fleet-% baseline-% compare-% race-% peers-model peers-cpu study-% steps-%,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

# A suite that fails does not keep the next from being measured, nor from what comes last.
define ONE_BY_ONE
	@failed=0; for suite in $(SUITES); do \
	  $(MAKE) --no-print-directory $(1)-$$suite || failed=1; \
	done; $(if $(2),$(MAKE) --no-print-directory $(2) || failed=1;) exit $$failed
endef

compile-all:
	$(COMPILE) program-all

program-all: $(SUITE_PROGRAMS) $(COMPARE)
	@:

suites: compile-all   ## measure every suite
	$(call ONE_BY_ONE,suite)

watch: compile-all   ## every suite's kernels and timelines, into results/kernels
	$(call ONE_BY_ONE,kernels)

# A step, and with twice the batch and twice the context: what was computed of them, and
# what they took.
MEMORY_SIZE := $(if $(filter cuda,$(BACKEND)),d=768 h=12 ff=3072 l=12 v=50257 tied=1,d=64 h=2 ff=256 l=2 v=256 tied=0)
MEMORY_TEXTS := $(if $(filter cuda,$(BACKEND)),b=2_t=1024 b=4_t=1024 b=2_t=2048,b=2_t=32 b=4_t=32 b=2_t=64)
MEMORY_SHAPES = $(foreach text,$(MEMORY_TEXTS),$(subst _, ,$(text)) $(MEMORY_SIZE);)
memory-model: compile-model   ## a training step's memory, computed and taken at twice its size
	@mkdir -p results/kernels
	$(BUILD)/model --filter '^model\.step (best|unfused|recompute) ' --max-time 0.05 --quiet --memory \
	  --memory-csv results/kernels/model.memory.csv --shape '$(MEMORY_SHAPES)' $(ARGS)
	awk -f compare/csv.awk -f scripts/memory_changes.awk results/kernels/model.memory.csv

peers-model: compile-model   ## a training step beside PyTorch and llm.c, in turn, into results/peers
	compare/peers-model.sh $(BUILD) results/peers $(ARGS)

# At the cases' own shapes, which are in the script.
THREADS ?= 1 $(filter-out 1,$(JOBS))
peers-cpu:   ## the CPU's variants beside PyTorch's and numpy's, in turn (THREADS="1 2"), into results/peers-cpu
	@$(MAKE) --no-print-directory BACKEND=cpu compile-all
	compare/peers-cpu.sh build/cpu results/peers-cpu $(THREADS)

precise:   ## how many of the rows in results/ reached their precision
	awk -f compare/csv.awk -f scripts/precise.awk $(wildcard $(SUITES:%=results/%.csv))

.PHONY: baseline-habits peers-baseline study-attention steps-model peers-cpu precise
peers-baseline: $(COMPARE)   ## append what make peers-model measured to baselines/
	sh scripts/peers-baseline.sh results/peers

steps-model: compile-model   ## steps a second on average and at the end, from single samples
	@mkdir -p results
	$(BUILD)/model --filter '^model[.]step (best|graph) ' --csv results/steps.csv --runs $(SUITE_RUNS) \
	  --samples results/steps-samples.csv $(ARGS)
	awk -f compare/csv.awk -f scripts/tables/steps.awk results/steps-samples.csv

study-attention: compile-block   ## attention's share of a block over the context, into results/study
	sh scripts/study-attention.sh $(BUILD)/block results/study $(ARGS)

study-warmup: compile-model   ## a training step's first runs in fresh processes, into results/study
	sh scripts/study-warmup.sh $(BUILD)/model results/study $(ARGS)

habits: compile-model   ## what habits cost a training step, as a table: results/habits.md (RUNS=3)
	@mkdir -p results
	$(BUILD)/model --filter 'model[.]habit' --csv results/habits.csv --runs $(or $(RUNS),3) $(ARGS)
	scripts/habits.sh results/habits.csv > results/habits.md
	cat results/habits.md

baseline-habits: compile-model   ## append what make habits measures to this device's baselines
	sh scripts/baseline.sh $(BUILD)/model habits $(BASELINE_RUNS) --filter 'model[.]habit' $(ARGS)

baselines: compile-all   ## measure every suite as a campaign of this device's baselines
	$(call ONE_BY_ONE,baseline)

torch-baselines: compile-all   ## measure PyTorch and the suites' fastest in turn, for this device's baselines
	sh scripts/torch-baselines.sh $(BUILD) $(TORCH_RUNS) $(ARGS)

compare: compile-all   ## measure every suite and judge it against the baselines
	@rm -f $(SUITES:%=results/%-summary.txt)
	$(call ONE_BY_ONE,compare,compared)

.PHONY: compared
compared:
	@sh scripts/summary.sh $(SUITES)

# What scripts/race.sh, which compare.sh calls too, builds the older revision with.
RACE_ENVIRONMENT = BACKEND=$(BACKEND) ARCH='$(ARCH)' CFLAGS='$(CFLAGS)' CC='$(CC)' \
  NVCC='$(NVCC)' CUDA_HOME='$(CUDA_HOME)' JOBS=$(JOBS)

# Of a fleet each node's: those that ARGS names, else all.
HOSTS ?=
LABELS ?=
DIR ?=
FLEET_SECONDS ?= 3600
ALL_DEVICES = $(if $(filter cuda,$(BACKEND)),$(if $(findstring --device,$(ARGS)),,--device all))

# What a suite's program is linked with beside its own object.
SUITE_SHARED = $(patsubst %,$(BUILD)/suites/%.o,suite gpubench once parallel peaks)
SUITE_LINKS = $(SUITE_SHARED) $(BUILD)/libkernels.a
# The first look at the project is at attention on the CPU: compiling what only others call
# would be a good part of its time.
FIRST_LOOK := attention ceilings common linear
FIRST_LOOK_OBJECTS = $(filter $(FIRST_LOOK:%=$(BUILD)/kernels/%/%),$(OBJECTS))
SUITE_NEEDS = $(if $(filter attention-cpu,$(1)-$(BACKEND)),$(SUITE_SHARED) $(FIRST_LOOK_OBJECTS),$(SUITE_LINKS))
# The other files of a suite are named by the suite, an underscore, and what is in them.
# Suites whose parts are checked one by one share what checks them.
SUITE_PARTS = $(patsubst %.c,$(BUILD)/%.o,$(wildcard suites/$(1)_*.c) \
  $(if $(filter block model,$(1)),suites/part_check.c suites/part_check_heads.c) \
  $(if $(filter collective scaling,$(1)),suites/launch.c suites/heartbeat.c suites/worker.c) \
  $(if $(filter scaling,$(1)),$(wildcard suites/collective_*.c)))
# The libraries that a suite needs beside those of all.
SUITE_LIBRARIES = $(if $(filter collective scaling,$(1)),$(MPI_LINK))

define SUITE_RULES
compile-$(1):
	$$(COMPILE) program-$(1) $(COMPARE)

alone-$(1):
	$$(COMPILE) program-$(1)

program-$(1): $(BUILD)/$(1)
	@:

suite-$(1): alone-$(1)
	@mkdir -p results
	$(LAUNCH) $(BUILD)/$(1) --csv results/$(1).csv --runs $(SUITE_RUNS) $(ARGS)
	$(foreach table,$(wildcard scripts/tables/$(1)_*.awk),@[ ! -e results/$(1).csv ] || \
	  awk -f compare/csv.awk -f compare/numbers.awk -f $(table) results/$(1).csv
	)

kernels-$(1): compile-$(1)
	@mkdir -p results/kernels
	$(BUILD)/$(1) --max-time 0.1 --kernels --kernels-csv results/kernels/$(1).csv \
	  --memory-csv results/kernels/$(1).memory.csv --trace results/kernels/$(1).json $(ARGS)

fleet-$(1): compile-$(1)
	HOSTS='$(HOSTS)' LABELS='$(LABELS)' DIR='$(DIR)' FLEET_SECONDS='$(FLEET_SECONDS)' \
	  sh scripts/fleet.sh $(BUILD)/$(1) $(1) --runs $(SUITE_RUNS) $(ALL_DEVICES) $(ARGS)

baseline-$(1): compile-$(1)
	sh scripts/baseline.sh $(BUILD)/$(1) $(1) $(BASELINE_RUNS) $(ARGS)

compare-$(1): compile-$(1)
	$$(RACE_ENVIRONMENT) sh scripts/compare.sh $(BUILD)/$(1) $(1) $(COMPARE_RUNS) $(ARGS)

race-$(1): compile-$(1)
	$$(RACE_ENVIRONMENT) \
	  sh scripts/race.sh $(BUILD)/$(1) $(1) $(if $(REV),--rev '$(REV)') -- $(ARGS)

$(BUILD)/$(1): $(BUILD)/suites/$(1).o $(call SUITE_PARTS,$(1)) $(call SUITE_NEEDS,$(1))
	$$(LINK) $(call SUITE_LIBRARIES,$(1))
endef
$(foreach s,$(SUITES),$(eval $(call SUITE_RULES,$(s))))

# The archive is removed first and then appended to: files of variants have the same names
# in many folders, and `ar r` would let members of one name replace each other.
$(BUILD)/libkernels.a: $(OBJECTS)
	rm -f $@
	$(AR) qcs $@ $^

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) -std=c11 $(UNFORTIFIED) $(CFLAGS) $(WARNINGS) $(EXHAUSTIVE) $(CUDA_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/%.cu.o: %.cu $(BUILD)/flags
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

# The one object that knows the revision and the compilers, for the CSV.
$(BUILD)/suites/gpubench.o: CUDA_CFLAGS += \
  '-DGPUBENCH_GIT="$(GIT)"' '-DGPUBENCH_COMPILER="$(COMPILER)"'
$(BUILD)/suites/gpubench.o: $(BUILD)/revision

# The objects that call MPI.
$(BUILD)/kernels/collective/mpi.o $(BUILD)/suites/launch.o: CUDA_CFLAGS += $(MPI_COMPILE)
$(BUILD)/kernels/collective/mpi.o $(BUILD)/suites/launch.o: $(BUILD)/mpi

# Such a file is written only when its content changes, and what depends on it is rebuilt
# only then.
define WRITE_IF_CHANGED
	@mkdir -p $(@D)
	@printf '%s\n' '$(1)' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
endef

$(BUILD)/revision: FORCE
	$(call WRITE_IF_CHANGED,$(GIT))

$(BUILD)/mpi: FORCE
	$(call WRITE_IF_CHANGED,$(MPI_COMPILE) $(MPI_LINK))

$(BUILD)/flags: FORCE
	$(call WRITE_IF_CHANGED,$(CC) $(UNFORTIFIED) $(CFLAGS) $(EXHAUSTIVE) $(NVCC_FOUND) $(NVCCFLAGS) $(CUDA_CFLAGS))

# ---- the compare tool

COMPARE_OBJECTS := $(patsubst %.c,build/%.o,$(wildcard compare/*.c))
COMPARE_LIBRARY := $(filter-out build/compare/main.o,$(COMPARE_OBJECTS))

build/compare/flags: FORCE
	$(call WRITE_IF_CHANGED,$(CC) $(UNFORTIFIED) $(CFLAGS) $(LDFLAGS))

build/compare/%.o: compare/%.c build/compare/flags
	@mkdir -p $(@D)
	$(CC) -std=c11 $(UNFORTIFIED) $(CFLAGS) $(WARNINGS) -MMD -MP -c $< -o $@

$(COMPARE): $(COMPARE_OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm

# ---- what else there is to do

include mk/tests.mk mk/faults.mk mk/load.mk mk/fuzz.mk mk/gpu-tests.mk mk/report.mk mk/install.mk mk/lint.mk

# cmocka is the test framework, some tests are C++, gnuplot draws the plots, patch makes the
# planted slowdown, Open MPI starts the ranks of the suites of several ranks.
PACKAGES := libcmocka-dev g++ gnuplot-nox patch openmpi-bin libopenmpi-dev
# These are the compilers of tests/header/test_compilers.sh, which skips missing ones, and what
# makes a file system with quotas. gcc-multilib would exclude the compilers for other processors,
# so i686 is one.
deps-ci: PACKAGES += btrfs-progs locales original-awk clang musl-tools gcc-i686-linux-gnu libc6-dev-i386-cross \
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross
deps-ci: deps   ## what deps does, and every compiler and tool that the tests can use
deps:   ## install what tests and plots need (apt; sudo if not root)
	@if command -v apt-get > /dev/null; then \
	  sudo=; [ "$$(id -u)" = 0 ] || { command -v sudo > /dev/null && sudo=sudo; }; \
	  dpkg -s $(PACKAGES) > /dev/null 2>&1 || \
	    { $$sudo apt-get update && $$sudo apt-get install -y --no-install-recommends $(PACKAGES); }; \
	else echo 'deps: no apt-get here; install cmocka with its headers, a C++ compiler, gnuplot and patch'; fi

help:   ## this list
	@sed -n 's/^\([a-z-]*\):.*##  */  make \1: /p' $(filter Makefile %.mk,$(MAKEFILE_LIST))
	@printf '  make %s: build and measure one suite into results/\n' $(SUITES:%=suite-%)
	@echo '  make baseline-SUITE, compare-SUITE, plot-SUITE: the same of one suite'
	@echo '  make kernels-SUITE: the kernels and a timeline of each case, into results/kernels/'
	@echo '  make race-SUITE [REV=...]: race one suite against the revision of its baseline, or REV'
	@echo '  make fleet-SUITE HOSTS="a b" [LABELS="r1 r2"]: one suite on every GPU of these nodes (ssh;'
	@echo '  without HOSTS in a Slurm allocation, srun), into results/fleet/SUITE.csv'
	@echo 'variables: BACKEND=auto|cpu|cuda ARCH="80 90a" MATRIX="75 90a" NVCC= CUDA_HOME= CC='
	@echo '  ARGS="--help" RUNS=5 MPI=0 LAUNCH="mpirun -np 4" FORCE=1 FUZZ_SECONDS=1800 FLEET_SECONDS=3600 DIR= PREFIX=/usr/local DESTDIR= LDFLAGS='

clean:   ## remove build/ (results/ stays)
	for tree in build/race/*/tree; do \
	  [ ! -e "$$tree" ] || git worktree remove --force --force "$$tree" || true; \
	done
	rm -rf build

# The dependencies that compilers found, but not those of the revisions that races build.
-include $(shell find build -path build/race -prune -o -name '*.d' -print 2>/dev/null)
