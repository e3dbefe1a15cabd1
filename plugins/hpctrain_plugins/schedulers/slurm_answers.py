"""What sbatch's answers mean, as regular expressions: read here by Python, and inside of jobs as data."""

ID = r"(\d+)(?:;[\w.-]+)?"
"""A line of `sbatch --parsable` or `squeue --format=%i`."""
NO_ANSWER = (
    r"socket timed out|unable to contact|connect failure|zero bytes|transmitted or received"
    r"|connection (?:refused|reset)|transport endpoint|temporarily un|standby mode"
    r"|unexpected message|communication|timed? ?out|interrupted system call"
)
REFUSED = (
    r"submission failed: |sbatch: fatal: |unrecognized option|invalid option|unable to open file"
    r"|sbatch: error: (?:invalid|bad|unknown|cli_filter|slurm_job_submit)"
)
