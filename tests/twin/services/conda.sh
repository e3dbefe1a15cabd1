# conda's shell function. ROOT is replaced by where this conda is.
# shellcheck shell=bash
export CONDA_EXE=ROOT/bin/conda CONDA_PYTHON_EXE=ROOT/bin/python CONDA_SHLVL="${CONDA_SHLVL:-0}"
conda() {
  local said
  case ${1:-} in
    activate | deactivate)
      said=$(ROOT/bin/conda shell.posix "$@") || return
      eval "$said"
      hash -r
      ;;
    *) ROOT/bin/conda "$@" ;;
  esac
}
