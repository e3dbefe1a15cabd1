"""What qsub's answers mean, as regular expressions: read here by Python, and inside of jobs as data."""

ID = r"(\d+(?:\[\])?\.[\w.-]+)"
"""A line of qsub or qselect."""
NO_ANSWER = (
    r"end of (?:file|message)|SIGPIPE|connection|cannot connect|timed? ?out|unknown host|protocol"
    r"|interrupted"
)
REFUSED_WORDS = (
    r"script (?:file|not a file|contains)|cannot send environment|directive error|invalid option|illegal"
)
LIMITS = r"would exceed|exceeds? |not allowed|not enabled|unauthori[sz]ed|-W value"
"""The words of some of the codes that say no."""
