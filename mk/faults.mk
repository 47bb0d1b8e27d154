# Faults at every call, signals at any moment: `make faults` tries them all, the tests some.

FAULTS := $(TESTS)/faults

$(FAULTS)/cuda_program: tests/faults/cuda_program.c tests/faults/cuda_calls.c tests/faults/fault.c \
  $(FAKE_CUDA_SOURCES) $(FAKE_NVML) $(TEST_HEADERS) tests/faults/wrapped.sh
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -rdynamic -o $@ $(filter tests/faults/%.c,$^) $(FAKE_CUDA) \
	  $$(tests/faults/wrapped.sh tests/faults/cuda_calls.c) -Wl,--no-as-needed $(FAKE_NVML) \
	  -Wl,-rpath,'$$ORIGIN/..' -lpthread -ldl -lm

$(FAULTS)/faults: $(patsubst %,tests/faults/%.c,faults plans outcome trial) $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -o $@ $(filter %.c,$^)

# Programs whose calls of the host can fail: one that uses what the header offers, the
# compare tool, and the suites with the CPU's kernels.
HOST_FAULTS := tests/faults/host_calls.c tests/faults/fault.c
WRAP_HOST = $$(tests/faults/wrapped.sh tests/faults/host_calls.c)
FAULTY := $(TEST_CFLAGS) $(SANITIZE) -U_FORTIFY_SOURCE
FAULT_PROGRAMS := $(FAULTS)/cuda_program $(FAULTS)/host_program $(FAULTS)/gpubench-compare

$(FAULTS)/host_program: tests/faults/host_program.c $(HOST_FAULTS) $(TEST_HEADERS) gpubench_trace.h
	@mkdir -p $(@D)
	$(CC) $(FAULTY) -o $@ $(filter tests/faults/%.c,$^) $(WRAP_HOST) -lpthread -lm

$(FAULTS)/gpubench-compare: $(wildcard compare/*.c) $(HOST_FAULTS) $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(FAULTY) -o $@ $(filter %.c,$^) $(WRAP_HOST) -lpthread -lm

$(FAULTS)/interrupt: tests/faults/interrupt.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -o $@ $<

# What `make test` runs of it: a part of the plans. tests.mk, which is read before this,
# does not know what they need.
FAULT_PLANS := cuda host compare
FAULT_NEEDS = $(FAULTS)/faults $(FAULT_PROGRAMS) $(COMPARE) $(SIGNAL_NEEDS)
SIGNAL_NEEDS = $(FAULTS)/host_program $(FAULTS)/interrupt $(COMPARE) $(BUILD)/norm $(TESTS)/first
SIGNALLED = tests/faults/signals.sh $(FAULTS) $(COMPARE) $(BUILD)/norm $(TESTS)/first
HOSTILE = tests/faults/hostile.sh $(FAULTS)/host_program $(COMPARE)
FAULT_TESTS = $(FAULT_PLANS:%="$(FAULTS)/faults % $(CURDIR)/$(FAULTS)") "$(SIGNALLED)" "$(HOSTILE)" \
  tests/scripts/test_reliability.sh
test-programs: $(FAULT_NEEDS)

faults: $(FAULT_NEEDS)   ## each call of CUDA, NVML and the system fails in turn, and how often (FAULT_EACH=4)
	failed=0; $(HOSTILE) || failed=1; \
	$(FAULTS)/faults '$(FAULT_PLANS)' '$(CURDIR)/$(FAULTS)' all || failed=1; \
	exit $$failed

# Of each kind of what writes results; as many by MOMENTS, drawn by SEED.
MOMENTS ?= 200
.PHONY: signals
signals: $(SIGNAL_NEEDS)   ## signals at MOMENTS=200 random moments of suites, races and scripts
	$(SIGNALLED) $(MOMENTS) $(SEED)
