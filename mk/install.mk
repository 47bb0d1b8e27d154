# Taking it along: installing, releases.

MANUAL := build/gpubench-compare.1

$(MANUAL): $(COMPARE) scripts/manual.sh gpubench.h
	sh scripts/manual.sh $(COMPARE) $(VERSION) > $@

# They go through the environment, where blanks and quotes in them mean nothing.
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
	cp -R gpubench.h gpubench_trace.h LICENSE README.md examples build/dist/$(RELEASE)
	tar -C build/dist -czf build/dist/$(RELEASE).tar.gz $(RELEASE)
	rm -r build/dist/$(RELEASE)
