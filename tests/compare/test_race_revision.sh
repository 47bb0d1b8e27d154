#!/bin/sh
# test_race_revision.sh RACER - scripts/race.sh in repositories of its own, whose suite
# is tests/fixtures/racer.c. As TAP lines.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
case $1 in /*) racer=$1 ;; *) racer=$PWD/$1 ;; esac
. "$root/tests/tap.sh"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
export BACKEND=cpu
mkdir "$work/tmp"
TMPDIR=$work/tmp
export TMPDIR

explain() { cat "$log"; }

# suite WORD...: the suite of this tree from now on.
suite() {
    {
        echo '#!/bin/sh'
        printf 'exec "%s"' "$racer"
        for word; do printf " '%s'" "$word"; done
        echo ' -- "$@"'
    } > toy
    chmod +x toy
}

# What a race must leave as it was.
state() {
    git status --porcelain
    git stash list
    git rev-parse HEAD
    git branch
    git worktree list --porcelain | sed -n '/build\/race/d; s/^worktree //p'
}

race() {
    before=$(state)
    make -s BACKEND=cpu build/cpu/toy
    timeout 100 sh scripts/race.sh build/cpu/toy toy "$@" > "$log" 2>&1
    status=$?
    if [ "$before" != "$(state)" ] || [ -n "$(ls "$TMPDIR")" ]; then
        echo "the repository is not as it was, or left in TMPDIR: $(ls "$TMPDIR")" >> "$log"
        status=99
    fi
}

says() { grep -qe "$1" "$log"; }

mkdir "$work/main"
cd "$work/main" || exit 2
git init -q -b trunk .
mkdir scripts compare build
cp "$root"/scripts/*.sh "$root"/scripts/*.awk scripts/
cp "$root"/compare/*.awk compare/
cp "$root/build/gpubench-compare" build/
printf '/build/\n' > .gitignore
cat > Makefile <<'EOS'
# A build that takes a while leaves time to be interrupted in.
build/$(BACKEND)/toy: toy
	mkdir -p $(@D)
	[ -z "$$SLOWLY" ] || { echo $$$$ > $$SLOWLY; sleep 5; }
	cp toy $@
	[ -z "$(CFLAGS)" ] || echo '# $(CFLAGS)' >> $@
EOS
suite salt=first
git add . && git commit -q -m first
first=$(git rev-parse HEAD)
git tag -a -m one one
suite salt=second 'slow=norm fast:1.05'
git commit -q -am second

race --rev one
[ $status -eq 1 ] && says '^SLOWER.*' && says '1 slower, 2 same' &&
    says "OLD is $(git rev-parse --short 'one^{commit}')" && ! says 'with changes'
check $? "5 % slower than an annotated tag: found"
touch -d 2001-01-01 "build/race/$first/tree/toy" "build/race/$first/tree/build/cpu/toy" 2> /dev/null
race --rev "$(git rev-parse --short HEAD^)"
[ $status -eq 1 ] && [ "$(find "build/race/$first/tree/build/cpu/toy" -newermt 2001-06-01)" = '' ]
check $? "a short hash of the same revision: what is built is used again"
(export GIT_DIR="$work/elsewhere/.git" GIT_INDEX_FILE=none && sh scripts/race.sh build/cpu/toy toy --rev one) > "$log" 2>&1
[ $? -eq 1 ] && says '1 slower, 2 same'
check $? "a hook's variables, which name another repository, are not followed"
for rev in HEAD 'HEAD^{/second}' trunk; do
    race --rev "$rev"
    [ $status -eq 0 ] && says '3 same'
    check $? "$rev against the tree: nothing changed"
done
suite salt=third
echo new > untracked
race --rev HEAD
[ $status -eq 0 ] && says '1 faster, 2 same' && says 'NEW is .* with changes'
check $? "a tree with changes is measured, and said to have them"
rm untracked
git checkout -q toy
for rev in none "$(git rev-parse HEAD:toy)" -q; do
    race --rev "$rev"
    [ $status -eq 2 ] && says 'no revision' && ! says shallow
    check $? "'$rev' is no revision: status 2"
done
race --rev one --only /dev/null
[ $status -eq 2 ] && says 'names no case'
check $? "--only goes on to the race"
printf 'sum fast\n' > build/only
race --rev one --only build/only -- --seed 5
[ $status -eq 0 ] && says '^1 case: 1 same'
check $? "so do its cases, and the suite's arguments"
race --rev one --verdicts build/verdicts
[ $status -eq 1 ] && [ "$(sh scripts/csv.sh values name=verdict build/verdicts | sort | tr '\n' ' ')" = 'SLOWER same ' ] &&
    says '1 slower, 2 same' && [ "$(grep -c 'the first process of a pair' "$log")" -eq 1 ]
check $? "--verdicts keeps the race's verdicts beside the report"
race --rev one --build-only
[ $status -eq 0 ] && [ -x "$(cat "$log")" ]
check $? "--build-only prints the old program's path"
CFLAGS='-O1 -g' race --rev HEAD~1 --build-only
rm -r "build/race/$first"
CFLAGS='-O1 -g' race --rev HEAD~1 --build-only
[ $status -eq 0 ] && grep -q '^# -O1 -g$' "$(cat "$log")"
check $? "a worktree that was removed by hand is made anew, with the flags of this build"

# ---- interrupted

for name in INT TERM KILL; do
    rm -rf "build/race/$first" "$work/slow"
    SLOWLY=$work/slow setsid sh scripts/race.sh build/cpu/toy toy --rev one > "$log" 2>&1 &
    script=$!
    turns=0
    while [ ! -s "$work/slow" ] && [ $turns -lt 100 ]; do
        sleep 0.1
        turns=$((turns + 1))
    done
    race --rev one
    [ $status -eq 2 ] && says "process [0-9]* is building there"
    check $? "SIG$name: while one builds, another one does not"
    owner=$(cat "build/race/$first/owner")
    group=
    [ "$name" != INT ] || group=- # as a terminal does
    kill -$name "$group$owner"
    wait $script 2> /dev/null
    [ "$name" != KILL ] || kill "$(cat "$work/slow")" 2> /dev/null
    race --rev one
    [ $status -eq 1 ] && says '1 slower, 2 same'
    check $? "SIG$name in the middle of the build: the next race works"
done
rm -f "build/race/$first/complete"
race --rev one
[ $status -eq 1 ]
check $? "a checkout that was cut short is made anew"
echo changed >> "build/race/$first/tree/toy"
race --rev one
[ $status -eq 2 ] && says 'has changes'
check $? "a worktree with changes is not raced"
rm -r "build/race/$first"
mkdir -p "build/race/$first/mine"
race --rev one
[ $status -eq 2 ] && says 'is not from here' && [ -d "build/race/$first/mine" ]
check $? "a folder of someone else is left alone"
rm -r "build/race/$first"

# ---- what the baseline names

file=baselines/toy-card/toy.csv
baseline() { # baseline GIT TIME: a campaign that was measured of it then
    [ -e $file ] || echo 'device,case,git,compiler,timestamp' > $file
    echo "Toy Card,copy,$1,\"cc, (some) 1\",$2" >> $file
}
race
[ $status -eq 2 ] && says 'baselines/toy-card/toy.csv is missing'
check $? "no baseline: status 2"
mkdir -p baselines/toy-card
baseline "$(git rev-parse --short HEAD)" 2026-01-02T00:00:00Z
baseline "$(git rev-parse --short 'one^{commit}')" 2026-01-03T00:00:00Z
baseline "$(git rev-parse --short HEAD)" 2026-01-01T00:00:00Z
race
[ $status -eq 1 ] && says '1 slower' && says "OLD is $(git rev-parse --short 'one^{commit}')"
check $? "the revision of the newest campaign, wherever in the file it is"
baseline "$(git rev-parse --short HEAD)-dirty" 2026-01-04T00:00:00Z
race
[ $status -eq 2 ] && says 'with changes, which cannot be built again'
check $? "a baseline of a tree with changes: status 2"

# ---- revisions that cannot be had

sed -i 's/cp toy/cp no-toy/' Makefile
git add . && git commit -q -m broken
git checkout -q HEAD~1 -- Makefile && git commit -q -m mended
race --rev HEAD~1
[ $status -eq 2 ] && says 'does not build' && says 'no-toy'
check $? "a revision that does not build: status 2, and the compiler's words"
git clone -q --depth 1 "file://$work/main" "$work/shallow"
cd "$work/shallow" || exit 2
mkdir build && cp "$root/build/gpubench-compare" build/
race --rev HEAD~1
[ $status -eq 2 ] && says 'shallow' && says 'git fetch --unshallow'
check $? "a shallow clone: status 2, and what helps"
git init -q -b trunk "$work/dep"
(cd "$work/dep" && echo 1 > file && git add . && git commit -q -m dep)
cd "$work/main" || exit 2
git -c protocol.file.allow=always submodule add -q "file://$work/dep" dep 2> /dev/null
git commit -q -m submodule
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always
race --rev HEAD --build-only
[ $status -eq 0 ] && [ -e "build/race/$(git rev-parse HEAD)/tree/dep/file" ]
check $? "a revision with a submodule has it"
older=$(git rev-parse HEAD)
(cd "$work/dep" && echo 2 > file && git commit -q -am dep2)
git -C dep pull -q > "$log" 2>&1
git commit -q -am 'newer submodule'
for rev in HEAD "$older"; do
    race --rev $rev --build-only
    cat "build/race/$(git rev-parse $rev)/tree/dep/file" >> "$work/deps"
done
[ "$(cat dep/file)" = 2 ] && [ "$(tr '\n' ' ' < "$work/deps")" = '2 1 ' ]
check $? "each revision has its own submodule's commit, not the tree's"
cp -R "$root/mk" . && cp "$root/Makefile" "$work/real.mk"
make -s -f "$work/real.mk" clean > "$log" 2>&1
git worktree list >> "$log"
[ ! -e build ] && [ "$(git worktree list | wc -l)" -eq 1 ]
check $? "make clean leaves no worktree"
rm -rf mk
mkdir build && cp "$root/build/gpubench-compare" build/
rm -rf .git/modules/dep && mv "$work/dep" "$work/gone"
race --rev HEAD
[ $status -eq 2 ] && says 'submodule of revision HEAD is not to be had: dep'
check $? "a submodule that cannot be had: status 2, and its name"

# ---- the recipe of compare/README.md

git init -q -b trunk "$work/bisect"
cd "$work/bisect" || exit 2
printf '/build/\n' > .gitignore
for commit in 1 2 3 broken 5 6 7 8; do
    case $commit in
    [123]) suite "salt=$commit" ;;
    *) suite "salt=$commit" 'slow=norm fast:1.05' ;;
    esac
    echo "build/toy: toy; mkdir -p build && cp toy build/toy" > Makefile
    [ "$commit" != broken ] || echo "build/toy: toy; false" > Makefile
    git add . && git commit -q -m "commit $commit"
done
git checkout -q HEAD~7 && make -s build/toy && cp build/toy "$work/good" && git checkout -q trunk
git bisect start trunk HEAD~7 > "$log" 2>&1
COMPARE=$root/build/gpubench-compare GOOD=$work/good git bisect run sh -c 'make -s build/toy || exit 125
  "$COMPARE" --race "$GOOD" build/toy -- --filter "^norm fast"
  s=$?; [ $s -eq 2 ] && exit 125; exit $s' >> "$log" 2>&1
git bisect log | sed -n 's/^# [a-z ]*first .*commit: .*\] //p' | sort > "$work/found"
[ "$(tr '\n' ',' < "$work/found")" = 'commit 5,commit broken,' ]
check $? "bisecting by races finds the commit, next to one that does not build"
cd "$work/main" || exit 2
rm -rf build .git
mkdir build && cp "$root/build/gpubench-compare" build/
before= && make -s BACKEND=cpu build/cpu/toy
sh scripts/race.sh build/cpu/toy toy --rev one > "$log" 2>&1
[ $? -eq 2 ] && says 'no git repository'
check $? "no repository: status 2"
mkdir "$work/bin"
for tool in sh awk sed; do ln -s "$(command -v $tool)" "$work/bin/"; done
PATH="$work/bin" sh scripts/race.sh build/cpu/toy toy --rev one > "$log" 2>&1
[ $? -eq 2 ] && says 'no git here'
check $? "no git: status 2"
finish
