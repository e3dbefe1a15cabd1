# Finds the run's tokens when run.sh starts, where `hpctrain submit` finds them; none is written into the script.
# shellcheck shell=bash
declare -A tokens=()
placed=()  # folders with tokens that no job has taken over
lacking=

in_variable() {  # takes a token from a variable
  value=${!1:-}
  [[ $value == *[![:space:]]* ]]
}

in_file() {  # takes it from a file of its own, whose path has these two parts
  local file=$1$2
  [[ $1 ]] || return 1
  file=${file/#\~\//${HOME:-}/}
  [[ -f $file ]] || return 1
  private "$file"
  value=$(<"$file")
}

in_netrc() {  # takes it from the file where curl looks for passwords of this machine
  local file=${NETRC:-${HOME:-}/.netrc}
  file=${file/#\~\//${HOME:-}/}
  [[ -f $file ]] || return 1
  private "$file"
  value=$(awk -v host="$1" '
    !NF { macro = 0; next }
    macro { next }
    { for (i = 1; i <= NF; i++) {
        if (key == "machine") { here = $i == host; if (here) found = 1; key = "" }
        else if (key) { if (key == "password" && here) password = $i; key = "" }
        else if ($i ~ /^#/) break
        else if ($i == "macdef") { macro = 1; break }
        else if ($i == "default") here = !found
        else if ($i ~ /^(machine|login|account|password)$/) key = $i
    } }
    END { print password }' "$file")
  [[ $value ]]
}

reach() {  # whether users reach a file: any of these bits of its mode, and of every folder above it
  local place=$1
  ((8#$(stat -c %a -- "$place") & $2)) || return 1
  while [[ $place != / ]]; do
    place=${place%/*}
    place=${place:-/}
    ((8#$(stat -c %a -- "$place") & $3)) || return 1
  done
}

private() {  # ends the script where others can open the file of a token
  local file
  file=$(realpath -- "$1")
  if [[ ! -O $file && $(stat -c %u -- "$file") != 0 ]]; then
    echo "$1 belongs to $(stat -c %U -- "$file")" >&2
  elif reach "$file" 8#6 8#1 || { [[ $(stat -c %U:%G -- "$file") != "$(id -un):$(id -un)" ]] && reach "$file" 8#60 8#11; }; then
    echo "$1 can be opened by others: chmod 600 $1" >&2
  else
    return 0
  fi
  exit 2
}

take() {  # keeps what was found as the token of this name
  value=${value#"${value%%[![:space:]]*}"}
  value=${value%"${value##*[![:space:]]}"}
  if [[ ! $value || $value == *[![:graph:]]* ]]; then
    echo "the token $1 is not one word of printable characters" >&2
    exit 2
  fi
  tokens[$1]=$value
  value=
}

lack() {  # nothing was found at these places
  echo "the run needs the token $1, which is in $2" >&2
  # shellcheck disable=SC2034  # run.sh ends by it when every token was looked for
  lacking=yes
}

token() {  # puts a token where the step reads it
  mkdir -p "${2%/*}"
  placed+=("${2%/*}")
  printf '%s\n' "${tokens[$1]}" >"$2"
}

trap '((${#placed[@]} == 0)) || rm -rf -- "${placed[@]}"' EXIT
