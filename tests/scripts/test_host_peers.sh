#!/bin/sh
# test_host_peers.sh - tests/peers/host.sh, with another tool's header replaced by one whose
# times are known. As TAP lines.
set -u
unset MAKEFLAGS MAKEOVERRIDES # of a make that runs this
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

explain() { tail -n 20 "$log"; }

# A copy of what the script needs; pkg-config knows no Google Benchmark.
mkdir -p "$work/tree/tests" "$work/bin" "$work/none" "$work/sources/nanobench"
cp gpubench.h "$work/tree"
cp -R tests/peers "$work/tree/tests"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/pkg-config"
chmod +x "$work/bin/pkg-config"
PATH=$work/bin:$PATH
cat >"$work/sources/nanobench/nanobench.h" <<'END'
#include <cstdio>
#include <ostream>
#include <string>
namespace ankerl { namespace nanobench {
template <class T> void doNotOptimizeAway(const T &) {}
struct Bench {
    std::string names;
    template <class F> void run(const char *name, F function) {
        function();
        std::printf("| - | `%s`\n", name);
        names += std::string(name) + " 2.5e-9\n";
    }
    void render(const char *, std::ostream &file) { file << names; }
};
} }
END

host() { "$work/tree/tests/peers/host.sh" "$@" >"$log" 2>&1; }

for rounds in 0 -1 x 1.5; do
    host "$rounds"
    [ $? -eq 2 ] && grep -q "'$rounds'" "$log"
    check $? "'$rounds' is no number of rounds"
done
PEERS_SOURCES=$work/none host 1
[ $? -eq 2 ] && [ "$(grep -c '^host.sh: without' "$log")" -eq 3 ]
check $? "no other tool: each is named"
PEERS_SOURCES=$work/sources host 2
check $? "one other tool is enough"
lines=$(wc -l <tests/peers/host/with_nanobench.cpp)
grep -Eq "^nanobench +$lines +[0-9]+\.[0-9][0-9] +[0-9.]+$" "$log"
check $? "its lines, and what it took"
[ "$(grep -c ' 2\.50 (2\.50 to 2\.50)$' "$log")" -eq 6 ]
check $? "what it found"
grep -q '^gpubench: .*did nothing: an empty function' "$log" &&
    grep -q '^nanobench: `empty`$' "$log"
check $? "what they say of an empty function"
awk '$1 == "empty" { exit $2 != "-" }' "$log"
check $? "gpubench gives it no time"
echo '#error broken' >>"$work/sources/nanobench/nanobench.h"
PEERS_SOURCES=$work/sources host 1
[ $? -eq 1 ] && grep -q 'with_nanobench does not compile' "$log"
check $? "a program that does not compile is named"
finish
