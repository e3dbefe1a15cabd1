# shellcheck shell=bash
# Publishing what a step makes; sourced by job.sh. Bash 4, coreutils and findutils only: before an
# environment exists, a node may have no usable Python.
#
#   PARENT/NAME -> .hpc-NAME.HOST.PID.RANDOM/content      one relative link, made atomically
#   PARENT/.hpc-NAME.HOST.PID.RANDOM/MANIFEST             size and sha256 of every file, written last
#
# Content is built under a unique name and never moves (a prefix does not survive a move). The artefact
# exists if and only if its link resolves; of several builders the first wins. There is no lock: Lustre
# may lack flock, and a link needs none.
#
#   hpc_exists LINK || { hpc_begin LINK && build_into "$WORK" && hpc_publish LINK; }
#
# HPC_OWNERS   users besides you whose artefacts you accept, separated by spaces
# HPC_SHARE    "project": your group may read what you publish, and publish beside it
# HPC_STRIPE   a command that gets each new folder before its first file (lfs setstripe …)

_HPC_HEAD='# hpctrain manifest 1'
_hpc_folder=''

_hpc_say() { printf 'hpctrain: %s\n' "$*" >&2; }

_hpc_absolute() {
    [[ $1 == /* ]] && printf '%s' "$1" || printf '%s' "$PWD/$1"
}

_hpc_shared() { [[ ${HPC_SHARE:-} == project ]]; }

# Whether LINK is published by somebody whose content may be run: else anyone in the group plants code.
_hpc_trusted() {
    [[ -O $1 ]] && return
    local owner
    owner=$(stat -L -c %U -- "$1") || return
    [[ " ${HPC_OWNERS:-} " == *" $owner "* ]]
}

# Whether LINK is published and ours to use; a shared one is also compared with its manifest.
hpc_exists() {
    [[ -L $1 && -e $1 ]] && _hpc_trusted "$1" && { [[ -O $1 ]] || hpc_verify "$1"; }
}

# Whether LINK is published and still what its manifest says; if not, it is named and taken away.
hpc_sound() {
    hpc_exists "$1" || return
    hpc_verify "$1" && return
    _hpc_say "$1 is made anew"
    rm -f -- "$1"
    return 1
}

# Whether something stands at LINK that must not be replaced or used.
_hpc_refuses() {
    if [[ -e $1 && ! -L $1 ]]; then
        _hpc_say "$1 is in the way: it is no link that hpctrain made"
    elif [[ -e $1 ]] && ! _hpc_trusted "$1"; then
        _hpc_say "$1 belongs to $(stat -L -c %U -- "$1"), who is not among the owners you accept"
    else
        return 1
    fi
}

# Files take the striping of their folder when they are made. Slow is better than not at all.
_hpc_stripe() {
    [[ ${HPC_STRIPE:-} ]] || return 0
    local -a words
    read -ra words <<<"$HPC_STRIPE"
    "${words[@]}" "$1" >&2 || _hpc_say "not striped: $HPC_STRIPE $1"
}

# Make a place to build and export it as WORK; the step makes WORK itself, as a file or a folder.
hpc_begin() {
    local link parent host folder try random
    link=$(_hpc_absolute "$1")
    parent=${link%/*}
    host=${HOSTNAME%%.*}
    _hpc_refuses "$link" && return 7
    (
        if _hpc_shared; then umask 007; fi # else nobody could publish beside us
        mkdir -p -- "$parent"
    ) || return
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

# Write MANIFEST for ./content. Sizes and sums come from one sorted list, so that line n is the same file.
_hpc_manifest() {
    find content -type f -print0 | LC_ALL=C sort -z >FILES &&
        xargs -0 -r stat -c %s -- <FILES >SIZES &&
        xargs -0 -r sha256sum -- <FILES >SUMS &&
        { printf '%s\n' "$_HPC_HEAD" && paste -d ' ' SIZES SUMS; } >MANIFEST || return
    # One flush of the file system first, then file by file: only the latter reports a late "disk full",
    # and it is quick when nothing is left to write.
    sync -f content && xargs -0 -r sync -- <FILES && rm -f -- FILES SIZES SUMS && sync -- MANIFEST .
}

# Point LINK at our content: 0 done, 1 somebody else was first. A link whose content was purged is
# replaced in one rename, so that no moment exists in which a good link of another builder is gone.
_hpc_point() {
    local link=$1 target=${_hpc_folder##*/}/content error
    error=$(ln -sT -- "$target" "$link" 2>&1) && return 0
    _hpc_refuses "$link" && return 7
    [[ -e $link ]] && return 1
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
    if ! (cd -- "$_hpc_folder" && set -o pipefail && _hpc_manifest); then
        _hpc_say "cannot write $_hpc_folder; nothing was published"
        return 74
    fi
    if _hpc_shared; then
        chmod -R g+rX -- "$_hpc_folder" || return
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
    local target folder head=''
    target=$(readlink -f -- "$1")
    folder=${target%/*}
    if [[ ! -e $target || ! -f $folder/MANIFEST ]]; then
        _hpc_say "$1 has no manifest"
        return 7
    fi
    IFS= read -r head <"$folder/MANIFEST"
    if [[ $head != "$_HPC_HEAD" ]]; then
        _hpc_say "$1 has a manifest of another version: $head"
        return 7
    fi
    [[ $(wc -l <"$folder/MANIFEST") -gt 1 ]] || return 0
    (cd -- "$folder" && tail -n +2 MANIFEST | cut -d ' ' -f 2- | sha256sum --check --quiet --strict) ||
        {
            _hpc_say "$1 is not what its manifest says"
            return 7
        }
}

# hpc_require LINK [OWNER…]: stop unless LINK's content is what its manifest says and is yours or one of these
# owners'. A damaged one of yours is set aside, so that the next run builds it anew and does not find it again.
hpc_require() {
    local aside HPC_OWNERS="${*:2}"
    if [[ ! -e $1 ]]; then
        _hpc_say "$1 was there when the run was planned, and is gone: submit again, and it is built anew"
        return 7
    fi
    if ! _hpc_trusted "$1"; then
        _hpc_refuses "$1"
        return 7
    fi
    hpc_verify "$1" && return
    if [[ -L $1 && -O $1 ]]; then
        aside=$1.damaged.$(date +%s).$$
        mv -T -- "$1" "$aside" &&
            _hpc_say "$1 is damaged and was set aside as ${aside##*/}: submit again, and it is built anew"
    fi
    return 7
}
