# What tools say of the code: `make lint`, `make coverage`, `make format`.

LINTERS := clang-tidy cppcheck shellcheck
lint:   ## clang-tidy, cppcheck, shellcheck, and the sizes of files and functions
	@scripts/lint.sh sizes $(LINTERS)

analyze:   ## clang-tidy, cppcheck and gcc's analyzer: what they find in the code's paths
	@scripts/lint.sh clang-tidy cppcheck analyzer

lint-%:
	@scripts/lint.sh $*

deps-lint: PACKAGES += $(LINTERS) clang-format
deps-lint: deps   ## what deps does, and the tools of lint and format

FORMATTED := '*.c' '*.h' '*.cu' '*.cuh' '*.cpp'
format:   ## lay out every C, C++ and CUDA file as .clang-format says
	git ls-files -z -- $(FORMATTED) | xargs -0 clang-format -i

# Built in a copy of the tree, where everything counts the lines that run. The tests
# of the header and of compare, traces and the faults of CUDA's calls among them (those of the
# system's calls fail also where lines are counted); what ends by a signal counts nothing.
COVERAGE := build/coverage
# Simulations run long, and no line that the others do not.
SIMULATIONS := $(TESTS)/compare/test_fleet_large $(TESTS)/compare/test_simulation $(TESTS)/compare/test_resample $(TESTS)/compare/test_race_world
COVERED_TESTS = $(HEADER_TESTS:%=$(TESTS)/test_%) $(CUDA_PROGRAMS) \
  $(filter-out $(SIMULATIONS),$(COMPARE_TESTS))
coverage:   ## how much of gpubench.h and compare/ the tests run (gcov): at least 92 % of lines, 85 of branches
	@rm -rf $(COVERAGE)
	@mkdir -p $(COVERAGE)
	@cp -R Makefile mk *.h kernels suites compare examples scripts baselines tests $(COVERAGE)
	@$(MAKE) --no-print-directory -C $(COVERAGE) BACKEND=cpu GIT=none SANITIZE=--coverage \
	  CFLAGS='-O1 --coverage' ROWS_CFLAGS='-O1 -g -I. --coverage' measure-coverage

# Whatever fails on a host that counting slows is told; its lines count all the same.
measure-coverage: $(COVERED_TESTS) $(COMPARE) $(RACE_PROGRAMS) $(TRACED_PROGRAMS) $(TESTS)/faults/faults $(TESTS)/faults/cuda_program
	@tests/run.sh $(filter-out $(TOOL_TESTS),$(COVERED_TESTS)) $(TOOL_TESTS:%="% $(COMPARE)") \
	  "tests/compare/test_race.sh $(RACE_PROGRAMS)" "tests/header/test_trace.sh $(TRACED_PROGRAMS)" \
	  "env FAULT_EACH=1 $(TESTS)/faults/faults cuda $(CURDIR)/$(TESTS)/faults all" > build/tests.log || tail -n 1 build/tests.log
	@find build -name '*.gcda' -exec gcov --stdout -b {} + 2> build/gcov.log | \
	  awk -v lines=92 -v branches=85 -f scripts/coverage.awk
