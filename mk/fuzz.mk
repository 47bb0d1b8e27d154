# Files and command lines from strangers: `make fuzz` looks for new faults, the tests give
# each target again what its corpus holds.

FUZZ_SECONDS ?= 60
FUZZ_TARGETS := csv kernels history reports tool safetensors checkpoint compare_options header
FUZZ := build/fuzz
FUZZ_CFLAGS := -std=c11 -g -O1 $(UNFORTIFIED) $(WARNINGS) -I.
FUZZ_HEADERS := $(wildcard tests/fuzz/*.h compare/*.h kernels/common/*.h) gpubench.h
FUZZED := $(filter-out compare/main.c,$(wildcard compare/*.c)) kernels/common/safetensors_read.c \
  kernels/common/safetensors_write.c
# A file of 4 KB may not ask for 64 MB at once, whatever it says of its own size.
FUZZ_LIMITS := -max_len=4096 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=64

# fuzz_rules(folder, compiler, flags, what has the main function)
define FUZZ_RULES
$(FUZZED:%.c=$(1)/objects/%.o) $(1)/objects/kernels/model/checkpoint.o: $(1)/objects/%.o: %.c
	@mkdir -p $$(@D)
	$(2) $(FUZZ_CFLAGS) $(3) -MMD -MP -c -o $$@ $$<

$(FUZZ_TARGETS:%=$(1)/%): $(1)/%: tests/fuzz/%.c $(4) $(FUZZED:%.c=$(1)/objects/%.o) $(FUZZ_HEADERS)
	$(2) $(FUZZ_CFLAGS) $(3) -o $$@ $$(filter %.c %.o %.a,$$^) -lm -ldl -lpthread

$(1)/checkpoint: $(1)/objects/kernels/model/checkpoint.o build/cpu/libkernels.a
endef
$(eval $(call FUZZ_RULES,$(FUZZ),clang,-fsanitize=fuzzer $(SANITIZE)))
$(eval $(call FUZZ_RULES,$(TESTS)/fuzz,$$(CC),$(SANITIZE),tests/fuzz/replay.c))

# What is new gathers in build/fuzz/corpus, and an input that fails in build/fuzz.
.PHONY: $(FUZZ_TARGETS:%=fuzz-%)
$(FUZZ_TARGETS:%=fuzz-%): fuzz-%: $(FUZZ)/%
	@mkdir -p $(FUZZ)/corpus/$*
	cd $(FUZZ) && ./$* -max_total_time=$(FUZZ_SECONDS) $(FUZZ_LIMITS) -close_fd_mask=3 \
	  -print_final_stats=1 -artifact_prefix=$*- corpus/$* $(CURDIR)/tests/fuzz/corpus/$*

fuzz:   ## fuzz files and command lines, FUZZ_SECONDS=60 each (clang; 1800 before a release)
	@failed=0; for target in $(FUZZ_TARGETS); do \
	  $(MAKE) --no-print-directory fuzz-$$target || failed=1; \
	done; exit $$failed

# The whole compare tool under AFL++: what fails or hangs lies in build/fuzz/afl/out.
AFL := build/fuzz/afl
AFL_SOURCES := tests/fuzz/tool.c tests/fuzz/standard_input.c $(FUZZED)
FUZZ_TIME ?= 600

$(AFL)/tool: $(AFL_SOURCES) $(FUZZ_HEADERS) compare/main.c
	@mkdir -p $(@D)
	AFL_QUIET=1 AFL_USE_ASAN=1 AFL_USE_UBSAN=1 afl-clang-fast $(FUZZ_CFLAGS) -o $@ $(AFL_SOURCES) -lm -lpthread

# Each file of the corpora as it is called for the kernels, the history and two sides.
$(AFL)/in: $(wildcard tests/fuzz/corpus/*/*)
	@rm -rf $@ && mkdir -p $@
	@for file in tests/fuzz/corpus/reports/* tests/fuzz/corpus/history/* tests/fuzz/corpus/kernels/*; do \
	  for call in 001 011 017 021; do \
	    { printf "\\$$call"; head -c 4000 "$$file"; } > "$@/$$call-$$(basename "$$(dirname "$$file")")-$${file##*/}"; \
	  done; \
	done

fuzz-afl: $(AFL)/tool $(AFL)/in   ## fuzz the whole compare tool with AFL++ for FUZZ_TIME=600 seconds
	AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_UI=1 AFL_NO_AFFINITY=1 AFL_AUTORESUME=1 \
	  afl-fuzz -i $(AFL)/in -o $(AFL)/out -V $(FUZZ_TIME) -t 5000 -m none -- $(AFL)/tool
	@grep 'run_time\|execs_done\|edges_found\|saved_crashes\|saved_hangs\|bitmap_cvg' $(AFL)/out/default/fuzzer_stats
	@test -z "$$(ls $(AFL)/out/default/crashes $(AFL)/out/default/hangs | grep ^id:)"

FUZZ_NEEDS := $(FUZZ_TARGETS:%=$(TESTS)/fuzz/%)
FUZZ_TESTS := $(foreach target,$(FUZZ_TARGETS),"$(TESTS)/fuzz/$(target) tests/fuzz/corpus/$(target)")
test-programs: $(FUZZ_NEEDS)
