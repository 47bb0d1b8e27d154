# Files and command lines from strangers: `make fuzz` looks for new faults, the tests give
# each target again what its corpus holds.

FUZZ_SECONDS ?= 60
FUZZ_TARGETS := csv kernels history reports safetensors compare_options header_options
FUZZ := build/fuzz
FUZZ_CFLAGS := -std=c11 -g -O1 $(WARNINGS) -I.
FUZZ_HEADERS := $(wildcard tests/fuzz/*.h compare/*.h kernels/common/*.h) gpubench.h
FUZZED := $(filter-out compare/main.c,$(wildcard compare/*.c)) kernels/common/safetensors_read.c \
  kernels/common/safetensors_write.c
# A file of 4 KB may not ask for 64 MB at once, whatever it says of its own size.
FUZZ_LIMITS := -max_len=4096 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=64

# fuzz_rules(folder, compiler, flags, what has the main function)
define FUZZ_RULES
$(FUZZED:%.c=$(1)/objects/%.o): $(1)/objects/%.o: %.c
	@mkdir -p $$(@D)
	$(2) $(FUZZ_CFLAGS) $(3) -MMD -MP -c -o $$@ $$<

$(FUZZ_TARGETS:%=$(1)/%): $(1)/%: tests/fuzz/%.c $(4) $(FUZZED:%.c=$(1)/objects/%.o) $(FUZZ_HEADERS)
	$(2) $(FUZZ_CFLAGS) $(3) -o $$@ $$(filter %.c %.o,$$^) -lm -lpthread
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

FUZZ_NEEDS := $(FUZZ_TARGETS:%=$(TESTS)/fuzz/%)
FUZZ_TESTS := $(foreach target,$(FUZZ_TARGETS),"$(TESTS)/fuzz/$(target) tests/fuzz/corpus/$(target)")
test-programs: $(FUZZ_NEEDS)
