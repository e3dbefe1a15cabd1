# shellcheck shell=bash
# Publishing what a step makes; sourced by job.sh. Bash 4, coreutils and findutils only: before an
# environment exists, a node may have no usable Python.
#
#   PARENT/NAME -> .hpc-NAME.HOST.PID.RANDOM/content      one relative link, made atomically
#   PARENT/.hpc-NAME.HOST.PID.RANDOM/MANIFEST             size and sha256 of every file, written last
#
# Content is built under a unique name and never moves (a prefix does not survive a move). The artifact
# exists if and only if its link resolves; of several builders the first wins. There is no lock: Lustre
# may lack flock, and a link needs none.
#
#   hpc_exists LINK || { hpc_begin LINK && build_into "$WORK" && hpc_publish LINK; }
#
# HPC_OWNERS   users besides you whose artifacts you accept, separated by spaces
# HPC_SHARE    "project": your group may read what you publish, and publish beside it
# HPC_STRIPE   a command that gets each new folder before its first file (lfs setstripe …)

_HPC_HEAD='# hpctrain manifest 1'
_hpc_folder=''
_hpc_verdict=''
_hpc_reason=''

_hpc_say() { printf 'hpctrain: %s\n' "$*" >&2; }

_hpc_absolute() {
    [[ $1 == /* ]] && printf '%s' "$1" || printf '%s' "$PWD/$1"
}

_hpc_shared() { [[ ${HPC_SHARE:-} == project ]]; }

# Whether files of a user are used: UID NAME. `@GROUP` in HPC_OWNERS accepts the users of a group.
_hpc_accepts() {
    local owner group name=$2
    local -a owners
    [[ $1 == "$EUID" || $1 == 0 ]] && return
    [[ $name != UNKNOWN ]] || name=''
    read -ra owners <<<"${HPC_OWNERS:-}" || : # as words, and never as patterns of file names
    for owner in ${owners[@]+"${owners[@]}"}; do
        [[ $owner == "$1" || ($name && $owner == "$name") ]] && return
        [[ $name && $owner == @* ]] || continue
        while IFS= read -r -d '' group; do # a group may be called `domain users`
            [[ @$group == "$owner" ]] && return
        done < <(id -Gnz -- "$name" 2>/dev/null)
    done
    return 1
}

# Write down why PATH is not used, with its OWNER, for _hpc_refuses.
_hpc_fault() {
    _hpc_reason="$1 $2"
    _hpc_verdict=${3:-refused}
    return 1
}

# Whether nobody can swap FOLDER or one above it, as far as they exist: every folder and every link on the way
# is an accepted owner's, and none lets others rename what is not theirs.
_hpc_folder_trusted() {
    local -a way=(/)
    local place='' part left target row mode uid name links=0 number=0
    left=$1/
    while [[ $left ]]; do
        part=${left%%/*}
        left=${left#*/}
        case $part in
            '' | .) continue ;;
            ..) place=${place%/*} && continue ;;
        esac
        [[ -e $place/$part || -L $place/$part ]] || break
        way+=("$place/$part")
        if [[ ! -L $place/$part ]]; then
            place=$place/$part
            continue
        fi
        ((++links <= 40)) || break
        target=$(readlink -- "$place/$part" && printf x) || break
        target=${target%?x}
        [[ $target != /* ]] || place=''
        left=$target/$left
    done
    while read -r mode uid name; do
        row=${way[number++]}
        mode=$((16#$mode))
        if ! _hpc_accepts "$uid" "$name"; then
            [[ $name != UNKNOWN ]] || name=$uid
            _hpc_fault "$row" "belongs to $name, who is not among the owners you accept"
            return 1
        fi
        (((mode & 0170000) == 0040000)) || continue
        if ((mode & 0002 && !(mode & 01000))); then
            _hpc_fault "$row" "may be changed by everybody"
            return 1
        fi
    done < <(stat -c '%f %u %U' -- "${way[@]}")
    ((number == ${#way[@]})) || { _hpc_fault "$1" "cannot be looked at" && return 1; }
    if [[ -d ${place:-/} && ! -x ${place:-/} ]]; then
        _hpc_fault "${place:-/}" "cannot be entered"
        return 1
    fi
    [[ ! $left && -d ${place:-/} ]] || return 0
    mode=0$(stat -c %a -- "${place:-/}") || return 0
    if ((mode & 0022 && !(mode & 01000))); then
        _hpc_fault "${place:-/}" "lets its group replace what others made there; chmod +t is missing"
        return 1
    fi
}

# What stands at LINK, in _hpc_verdict: exists, missing, stale (ours, to be made anew) or refused. Owners and
# modes of the names on the way decide, never the owner of what a link points to. hpctrain_job.files.trust is the same.
_hpc_judge() { _hpc_judged "$1" || :; }

_hpc_judged() {
    local link parent uid name
    _hpc_verdict=missing _hpc_reason=''
    link=$(_hpc_absolute "$1" && printf x)
    link=${link%x}
    parent=${link%/*}
    _hpc_folder_trusted "${parent:-/}" || return
    if [[ ! -L $link ]]; then
        [[ ! -e $link ]] || _hpc_fault "$link" "is in the way: it is no link that hpctrain made"
        return
    fi
    read -r uid name < <(stat -c '%u %U' -- "$link")
    if ! _hpc_accepts "$uid" "$name"; then
        [[ $name != UNKNOWN ]] || name=$uid
        _hpc_fault "$link" "belongs to $name, who is not among the owners you accept"
    elif _hpc_content_trusted "$parent" "${link##*/}" "$link"; then
        _hpc_verdict=exists
    elif [[ $uid == "$EUID" ]]; then
        _hpc_verdict=stale
    fi
}

# Whether LINK leads to the build folder of its NAME, with the manifest of this name.
_hpc_content_trusted() {
    local target base mode uid name
    target=$(readlink -- "$3" && printf x)
    target=${target%?x}
    base=$1/${target%/content}
    if [[ $target != ".hpc-$2."?*/content || ${target%/content} == */* ]]; then
        _hpc_fault "$3" "leads to no build folder of its name"
    elif [[ -L $base || ! -d $base || -L $base/content || ! -e $base/content || ! -f $base/MANIFEST ]]; then
        _hpc_fault "$3" "leads to nothing whole"
    else
        read -r mode uid name < <(stat -c '%f %u %U' -- "$base")
        if ! _hpc_accepts "$uid" "$name"; then
            _hpc_fault "$3" "leads to a folder of $name"
        elif ((16#$mode & 0022)); then
            _hpc_fault "$3" "leads to a folder that others may write"
        elif ! _hpc_named "$base" "$2"; then
            _hpc_fault "$3" "has no manifest of its own"
        fi
    fi
}

# A name on one line, as sha256sum writes it.
_hpc_escaped() {
    local name=${1//\\/\\\\}
    printf '%s' "${name//$'\n'/\\n}"
}

# Whether FOLDER's manifest is that of NAME, and lists files of its content and no others.
_hpc_named() {
    local head='' row='^(0|[1-9][0-9]*) \\?[0-9a-f]{64}  content(/.*)?$'
    { IFS= read -r head <"$1/MANIFEST"; } 2>/dev/null || return
    [[ $head == "$_HPC_HEAD $(_hpc_escaped "$2")" && ! $(tail -c 1 -- "$1/MANIFEST") ]] || return
    if (($(wc -l <"$1/MANIFEST") == 1)); then
        [[ -d $1/content && ! $(find "$1/content" -type f -print -quit) ]]
        return
    fi
    # Counted: with pipefail a grep that stops early would end its pipe in an error.
    [[ $(tail -n +2 -- "$1/MANIFEST" | LC_ALL=C grep -acvE "$row") == 0 ]] &&
        [[ $(tail -n +2 -- "$1/MANIFEST" | LC_ALL=C grep -acE '/\.\.(/|$)') == 0 ]]
}

# An open folder of ours is closed: in a sticky one nobody replaces what is not his.
_hpc_close() {
    if [[ -d $1 && -O $1 && ! -k $1 ]] && (($(stat -L -c '0%a' -- "$1") & 0022)); then chmod +t -- "$1"; fi
}

# Whether LINK is published and ours to use; one of another owner is also compared with its manifest.
hpc_exists() {
    local link owner
    link=$(_hpc_absolute "$1")
    _hpc_close "${link%/*}"
    _hpc_judge "$1"
    [[ $_hpc_verdict == exists ]] || return
    owner=$(stat -c %u -- "$1") || return
    [[ $owner == "$EUID" ]] || hpc_verify "$1"
}

# Whether LINK is published and still what its manifest says; if not, it is named and taken away.
hpc_sound() {
    hpc_exists "$1" || return
    hpc_verify "$1" && return
    _hpc_say "$1 is made anew"
    rm -f -- "$1"
    return 1
}

# Whether something stands at LINK, or on the way to it, that must not be replaced or used.
_hpc_refuses() {
    _hpc_judge "$1"
    [[ $_hpc_verdict == refused ]] || return
    _hpc_say "$_hpc_reason"
}

# Files take the striping of their folder when they are made. Slow is better than not at all.
_hpc_stripe() {
    [[ ${HPC_STRIPE:-} ]] || return 0
    local -a words
    read -ra words <<<"$HPC_STRIPE"
    "${words[@]}" "$1" >&2 || _hpc_say "not striped: $HPC_STRIPE $1"
}

# Make FOLDER and what is missing above it. Others may publish beside us in a shared one, and replace nothing.
_hpc_make_parents() {
    local -a mode=()
    [[ ! -d ${1:-/} ]] || return 0
    _hpc_make_parents "${1%/*}" || return
    if _hpc_shared; then mode=(-m 1770); fi
    mkdir "${mode[@]}" -- "$1" 2>/dev/null || [[ -d $1 ]] || mkdir "${mode[@]}" -- "$1"
}

# Make a place to build and export it as WORK; the step makes WORK itself, as a file or a folder.
hpc_begin() {
    local link parent host folder try random
    link=$(_hpc_absolute "$1")
    parent=${link%/*}
    host=${HOSTNAME%%.*}
    _hpc_close "$parent"
    _hpc_refuses "$link" && return 7
    _hpc_make_parents "$parent" || return
    for try in 1 2 3; do
        printf -v random '%04x%04x' "$RANDOM" "$RANDOM"
        folder=$parent/.hpc-${link##*/}.${host//[^A-Za-z0-9-]/-}.$$.$random
        mkdir -m 700 -- "$folder" && break
        ((try < 3)) || return 1
    done
    _hpc_stripe "$folder"
    _hpc_folder=$folder
    export WORK=$folder/content
}

# Write MANIFEST for ./content, the artifact NAME. Sizes and sums come from one sorted list, so that line n is the same file.
_hpc_manifest() {
    find content -type f -print0 | LC_ALL=C sort -z >FILES &&
        xargs -0 -r stat -c %s -- <FILES >SIZES &&
        xargs -0 -r sha256sum -- <FILES >SUMS &&
        { printf '%s %s\n' "$_HPC_HEAD" "$(_hpc_escaped "$1")" && paste -d ' ' SIZES SUMS; } >MANIFEST || return
    # One flush of the file system first, then file by file: only the latter reports a late "disk full",
    # and it is quick when nothing is left to write.
    sync -f content && xargs -0 -r sync -- <FILES && rm -f -- FILES SIZES SUMS && sync -- MANIFEST .
}

# Point LINK at our content: 0 done, 1 somebody else was first. A link of ours whose content was purged,
# or is another's, is replaced in one rename, so that no moment exists in which a good link of another builder is gone.
_hpc_point() {
    local link=$1 target=${_hpc_folder##*/}/content error
    error=$(ln -sT -- "$target" "$link" 2>&1) && return 0
    _hpc_refuses "$link" && return 7
    [[ $_hpc_verdict == exists ]] && return 1
    if [[ -L $link ]]; then
        ln -sT -- "$target" "$_hpc_folder/link" && mv -fT -- "$_hpc_folder/link" "$link" && return 0
    fi
    _hpc_say "$error"
    return 74
}

# Publish what the step made in WORK under LINK. Losing against another builder is success too.
hpc_publish() {
    local link status=0
    link=$(_hpc_absolute "$1")
    if [[ -z $_hpc_folder || -L $_hpc_folder/content || ! -e $_hpc_folder/content ]]; then
        _hpc_say "the step made nothing at ${WORK:-WORK}"
        return 1
    fi
    if ! (cd -- "$_hpc_folder" && set -o pipefail && _hpc_manifest "${link##*/}"); then
        _hpc_say "cannot write $_hpc_folder; nothing was published"
        return 74
    fi
    if _hpc_shared; then
        chmod -R g+rX,g-w,o-w -- "$_hpc_folder" || return
    fi
    _hpc_point "$link" || status=$?
    case $status in
        0) sync -- "${link%/*}" ;;
        1) hpc_abandon ;;
        *) return "$status" ;;
    esac
    _hpc_folder=''
    unset WORK
}

# Remove what was begun and not published; harmless at any time, meant for an EXIT trap.
hpc_abandon() {
    local folder=$_hpc_folder
    _hpc_folder=''
    [[ ${folder##*/} == .hpc-* ]] || return 0
    rm -rf -- "$folder" 2>/dev/null && return
    chmod -R u+rwX -- "$folder" # packages may hold folders that are read-only
    rm -rf -- "$folder"
}

# Compare LINK's content with its manifest: 0 the same, 7 not. Files added later do no harm.
hpc_verify() {
    local target folder name head=''
    target=$(readlink -f -- "$1")
    folder=${target%/*}
    if [[ ! -e $target || ! -f $folder/MANIFEST ]]; then
        _hpc_say "$1 has no manifest"
        return 7
    fi
    IFS= read -r head <"$folder/MANIFEST"
    if [[ $head != "$_HPC_HEAD "* ]]; then
        _hpc_say "$1 has a manifest of another version: $head"
        return 7
    fi
    name=${folder##*/}
    name=${name#.hpc-}
    if ! _hpc_named "$folder" "${name%.*.*.*}"; then
        _hpc_say "$1 has a manifest that is not its own"
        return 7
    fi
    [[ $(wc -l <"$folder/MANIFEST") -gt 1 ]] || return 0
    (cd -- "$folder" && tail -n +2 MANIFEST | cut -d ' ' -f 2- | sha256sum --check --quiet --strict) ||
        {
            _hpc_say "$1 does not match its manifest"
            return 7
        }
}

# hpc_trust LINK [OWNER…]: stop unless LINK may be used; what another user published is compared with its manifest,
# what is ours is not read again.
hpc_trust() {
    local HPC_OWNERS="${*:2}"
    _hpc_judge "$1"
    [[ -e $1 ]] || _hpc_reason='' # a link whose content was purged
    if [[ $_hpc_verdict != exists ]]; then
        _hpc_say "${_hpc_reason:-$1 was there when the run was planned, and is gone}: nothing was run"
        return 7
    fi
    [[ $(stat -c %u -- "$1") == "$EUID" ]] || hpc_verify "$1"
}

# hpc_require LINK [OWNER…]: stop unless LINK's content is what its manifest says and is yours or one of these
# owners'. A damaged one of yours is set aside, so that the next run builds it anew and does not find it again.
hpc_require() {
    local aside HPC_OWNERS="${*:2}"
    if [[ ! -e $1 ]]; then
        _hpc_say "$1 was there when the run was planned, and is gone: submit again, and it is built anew"
        return 7
    fi
    _hpc_judge "$1"
    if [[ $_hpc_verdict != exists ]]; then
        _hpc_say "$_hpc_reason"
        return 7
    fi
    hpc_verify "$1" && return
    if [[ $(stat -c %u -- "$1") == "$EUID" ]]; then
        aside=$1.damaged.$(date +%s).$$
        mv -T -- "$1" "$aside" &&
            _hpc_say "$1 is damaged and was set aside as ${aside##*/}: submit again, and it is built anew"
    fi
    return 7
}
