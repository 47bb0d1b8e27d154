# Many cases, many processes, a day, many rows: `make load` in full, the tests a small part.

LOAD := $(TESTS)/load
# Counts the basic blocks that are executed: gcc and clang know it.
COUNTED := -fsanitize-coverage=trace-pc

$(LOAD)/work.o: tests/load/work.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -MMD -MP -c $< -o $@

# The clock is the program's own.
$(LOAD)/cases: tests/load/cases.c $(LOAD)/work.o gpubench.h
	$(CC) $(TEST_CFLAGS) $(COUNTED) -o $@ $(filter-out %.h,$^) -Wl,--wrap=clock_gettime -lm

$(LOAD)/gpubench-compare: $(wildcard compare/*.c) $(LOAD)/work.o $(TEST_HEADERS)
	$(CC) $(TEST_CFLAGS) $(COUNTED) -o $@ $(filter-out %.h,$^) -lm

LOAD_NEEDS := $(LOAD)/cases $(LOAD)/gpubench-compare
LOAD_TESTS := "tests/load/load.sh $(LOAD_NEEDS)"
test-programs: $(LOAD_NEEDS)

LOAD_CASES ?= 100000
LOAD_RUNS ?= 1000
LOAD_CLOCK ?= 8640
LOAD_ROWS ?= 10000000
load: $(LOAD_NEEDS)   ## 100,000 cases, 1,000 processes, 24 hours of a moved clock, 10 million rows to compare
	LOAD_CASES=$(LOAD_CASES) LOAD_RUNS=$(LOAD_RUNS) LOAD_CLOCK=$(LOAD_CLOCK) LOAD_ROWS=$(LOAD_ROWS) \
	  tests/load/load.sh $(LOAD_NEEDS)
