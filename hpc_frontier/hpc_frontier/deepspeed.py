"""The file from which DeepSpeed's own launcher takes what workers on other nodes get.

It is written in the job, after the modules and every variable of the plan, so that it holds what really
is: PATH too. Ranks that srun starts inherit all of it and read no file; the launcher reads
`~/.deepspeed_env`, which all jobs of a user share, unless DS_ENV_FILE names another.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.plugin import Cluster, Cmd, EnvVar, File, How, Join, Layer, Problem, RunSpec, Var

SCRIPT = """\
# deepspeed_env.sh PATTERN...: NAME=value of every exported variable that a pattern matches, to $DS_ENV_FILE.
set -euo pipefail
[[ $HPC_RANK == 0 ]] || exit 0  # one file for the run, whole or not there
umask 077
new=$DS_ENV_FILE.$HPC_JOB
: >"$new"
for name in $(compgen -e | sort); do
  [[ ${!name} != *$'\\n'* ]] || continue  # one line is one variable
  for pattern in "$@"; do
    # shellcheck disable=SC2053  # a pattern is meant
    if [[ $name == $pattern ]]; then
      printf '%s=%s\\n' "$name" "${!name}" >>"$new"
      break
    fi
  done
done
mv -f -- "$new" "$DS_ENV_FILE"
"""


def layer(run: RunSpec, cluster: Cluster) -> Layer:
    """The variable, the script and its patterns."""
    facts = cluster.facts["deepspeed_env"]
    folder = Join(Var("HPC_RUN"), "/steps/", Var("HPC_STEP"))
    return Layer(
        env=(
            EnvVar(
                name="DS_ENV_FILE",
                value=Join(folder, "/deepspeed.env"),
                how=How.DEFAULT,
                why="DeepSpeed's launcher would read ~/.deepspeed_env, which all of your jobs share",
                fact=facts["source"],
            ),
            EnvVar(
                name="TORCH_EXTENSIONS_DIR",
                value=Join(Var("HPC_RUN"), "/cache/extensions"),
                how=How.DEFAULT,
                why="two runs that compile into one folder wait for each other's lock",
                fact=facts["source"],
            ),
        ),
        task=(
            Cmd.of(
                *("bash", Join(folder, "/deepspeed_env.sh")), *facts["tutorial"], *facts["more"], *run.env
            ),
        ),
        files=(File(path="deepspeed_env.sh", body=(SCRIPT,)),),
    )


def problems(run: RunSpec) -> Iterator[Problem]:
    """Variables that the file cannot hold."""
    for name, value in run.env.items():
        if "\n" in value:
            yield Problem(
                code="deepspeed-line",
                message=f"{name} holds a line break, which DeepSpeed's environment file cannot",
                where=f"env.{name}",
                notes=("ranks of the batch system have it; workers of DeepSpeed's own launcher do not",),
                hint="a file that the program reads, and its path in the variable",
                fatal=False,
            )
