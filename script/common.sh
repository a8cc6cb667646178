# What the scripts of this folder share; they source it. Every script can be started from any folder.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/build/venv
build=${TWINKLE_BUILD_DIR:-$root/build/release}

say() { printf '%s\n' "$*" >&2; }
fail() {
    say "$(basename "$0"): $*"
    exit 1
}

# The comment block at the top of a script is its help.
help_and_exit() {
    sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
    exit 0
}

jobs() { nproc 2>/dev/null || echo 2; }

# Files that differ from the commit $1 (also what is not committed yet), below the folders that hold
# code of ours; every tracked file where $1 is empty. Arguments 2…: patterns of git.
changed_files() {
    local base=$1
    shift
    (
        cd "$root"
        if [ -n "$base" ]; then
            git diff --name-only --diff-filter=d "$base" -- "$@"
            git ls-files --others --exclude-standard -- "$@"
        else
            git ls-files -- "$@"
        fi
    ) | sort -u
}
