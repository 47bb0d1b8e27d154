# shellcheck shell=sh disable=SC2034
# draw.sh - what the plot scripts share; they read it with `.` and have set
# `plots` (this folder) and `usage` before.

export LC_ALL=C CDPATH=
reader=$plots/../csv.awk
numbers=$plots/../numbers.awk
. "$plots/../../scripts/ended.sh"
. "$plots/../../scripts/followed.sh"
work=
temporary=
clean_up() { rm -rf "$work" "$temporary"; }

die() {
    echo "$(basename "$0"): $*" >&2
    exit 2
}

# Reads the options that every script takes and those named in $1 (a getopts string).
# Leaves the number of words to shift in OPTIND.
read_options() {
    letters=$1
    shift
    each=0 formats='svg png' ceilings='' margin=2 most=0 device=''
    while getopts "h$letters" letter; do
        case $letter in
        e) each=1 ;;
        s) formats=svg ;;
        c) ceilings=$OPTARG ;;
        m) margin=$OPTARG ;;
        n) most=$OPTARG ;;
        t) device=$OPTARG ;;
        h) echo "$usage"; exit 0 ;;
        *) echo "$usage" >&2; exit 2 ;;
        esac
    done
    case $margin in
    '' | *[!0-9.]* | *.*.*) die "-m $margin: no percentage" ;;
    esac
    case $most in
    '' | *[!0-9]*) die "-n $most: no number of cases" ;;
    esac
}

# A folder in $work, whose path awk takes as it is: in its variables backslashes are escapes.
make_room() {
    work=$(unbroken mktemp -d) || exit 2
    case $work in
    *\\* | *"
"*) die "TMPDIR '$TMPDIR': wants a path without backslashes and line ends" ;;
    esac
}

start() { # start STEM FILE...
    [ $# -ge 2 ] || { echo "$usage" >&2; exit 2; }
    command -v gnuplot >/dev/null || die "needs gnuplot, and there is none (make deps)"
    make_room
    stem=$1
    [ -d "$(dirname "$stem")" ] || die "$stem: no such folder"
    shift
    readable "$@"
}

readable() {
    for file; do
        [ -f "$file" ] && [ -r "$file" ] || die "$file: cannot read it"
        [ -s "$file" ] || die "$file: empty"
    done
}

result_columns='schema suite case variant dtype params mode campaign run status flags median_us'
result_columns="$result_columns bytes flops device" # in one line, as some awks want it

# points TARGET FILE...: results as the lines of points.awk, in order.
points() {
    target=$1
    shift
    awk -v needs="$result_columns" -f "$reader" -f "$numbers" -f "$plots/points.awk" "$@" \
        >"$target.new" || exit 2
    sort "$target.new" | cut -f 2- >"$target"
}

# One script of gnuplot, as SVG or PNG. The target's path is text to gnuplot, whatever it holds.
render() { # render SCRIPT FORMAT TARGET
    quoted=$(printf '%s' "$3" | sed "s/'/''/g")
    gnuplot -e "format='$2'; target='$quoted'" "$1" 2>"$work/complaints" >&2 && [ -s "$3" ] &&
        return
    sed 's/^/gnuplot: /' "$work/complaints" >&2
    die "gnuplot did not draw $(sed -n '1s/^# //p' "$1")"
}

# Draws every script of $work; only when all of them are there do they take their
# names: the stem for "all", else the stem, a dash, and the script's name.
draw() {
    for script in "$work"/*.gp; do
        name=$(basename "$script" .gp)
        for format in $formats; do
            render "$script" "$format" "$work/$name.$format"
        done
    done
    for script in "$work"/*.gp; do
        name=$(basename "$script" .gp)
        [ "$name" = all ] && picture=$stem || picture=$stem-$name
        for format in $formats; do
            publish "$work/$name.$format" "$picture.$format" "$(sed -n '1s/^# //p' "$script")"
        done
    done
}

publish() { # publish FILE TARGET TITLE
    target=$(real "$2") || die "$2: a link that leads nowhere"
    temporary=$(unbroken beside "$target") || die "$2: cannot write it"
    case $2 in
    *.svg) awk -v prefix="$(basename "$2" .svg)" -v title="$3" -f "$plots/theme.awk" "$1" >"$temporary" ;;
    *) cp "$1" "$temporary" ;;
    esac && mv "$temporary" "$target" || die "$2: cannot write it"
    temporary=
}
