"""Failures of any program on such machines: a pattern in a log or in the exit record, its cause, its cure.

`guess` is what an exit code alone tells; it is shown where nothing else is known.
"""

from __future__ import annotations

from hpctrain.model.job import Rule

CERTAIN, LIKELY, GUESS = "certain", "likely", "guess"
RANK = r"^(?:\[\w+\]: ?|\d+: ?)?"
"""What launchers put in front of a rank's lines."""

_TABLE = (
    # name, pattern, cause, fix, how sure
    ("gpu-memory", (r"(?:CUDA|HIP) out of memory|torch\.(?:cuda\.)?OutOfMemoryError|CUDA error: out of memory"
     r"|hipErrorOutOfMemory|RESOURCE_EXHAUSTED: Out of memory"),
     "the GPU's memory is full",
     "a smaller batch per GPU with more accumulation steps, activation checkpointing, or more GPUs", CERTAIN),
    # What jobs are killed by that use more than they asked for: Slurm's, PBS's and the kernel's words.
    ("job-memory", (r"oom[_-]kill event|exceeded memory limit \(\d+ > \d+\)"
     r"|Exceeded (?:job|step) memory limit|^\w+: error: .*: tasks? [\d,-]+: Out Of Memory"
     r"|job killed: v?mem \S+ exceeded limit"
     r"|Memory cgroup out of memory: Kill|oom-kill:constraint=CONSTRAINT_MEMCG"),
     "the job used more memory on a node than it asked for, and its processes were killed",
     "[resources] memory_gb with more than that, which is of a node; or fewer data workers", CERTAIN),
    ("host-memory", RANK + r"(?:[\w.]+\.)?_?(?:Array)?MemoryError(?::|\s*$)"
     r"|DefaultCPUAllocator: (?:can't allocate|not enough) memory"
     r"|Out of memory: Kill|oom-kill:constraint=CONSTRAINT_NONE|\[Errno 12\] Cannot allocate memory",
     "the node's memory, or the job's part of it, is full",
     "fewer data workers, a smaller batch, or whole nodes: [resources] nodes = 1", CERTAIN),
    ("disk-full", r"No space left on device|\[Errno 28\]",
     "the disk that the line names is full",
     "free some space, or keep fewer checkpoints; the newest whole one is there: hpctrain continue", CERTAIN),
    ("disk-full-torch", (r"basic_ios::clear: iostream error|unexpected pos \d+ vs \d+"
     r"|PytorchStreamWriter failed writing file"),
     "torch could not write a file to its end: most often the disk or the quota is full",
     "df -h and the site's quota command for the folder of the checkpoints, then hpctrain continue", LIKELY),
    ("quota", r"Disk quota exceeded|\[Errno 122\]",
     "your quota on the disk is used up",
     "the site's quota command says where; free some, then hpctrain continue", CERTAIN),
    ("collective-timeout", (r"Watchdog caught collective operation timeout"
     r"|watchdog thread terminated with exception"),
     "a rank died or hangs, and the others waited for it (NCCL or RCCL watchdog)",
     "look for the first traceback in the ranks' logs; the timeout is a consequence", LIKELY),
    ("collective-error", r"nccl(?:System|Remote|UnhandledCuda|Internal)Error|NCCL error in|RCCL error in",
     "NCCL or RCCL lost its connection, or its peer",
     "look for the first traceback in the ranks' logs; NCCL_DEBUG = \"INFO\" in [env] says more", LIKELY),
    ("module-missing", RANK + r"ModuleNotFoundError: No module named ",
     "a module that the program imports is not in the environment",
     "add its package: [environment] packages = [...]; your own code: [code] path", CERTAIN),
    ("hub-gated", r"GatedRepoError|Cannot access gated repo|not in the authorized list|\b40[13] Client Error",
     "the repository is gated or private, and no token that may read it was sent",
     'ask for access on its page; then secrets = ["huggingface"] at the top of the run file', CERTAIN),
    ("hub-missing", (r"RepositoryNotFoundError|Repository Not Found for url|RevisionNotFoundError"
     r"|\b404 Client Error"),
     "there is no such repository, file or revision, or it is private",
     "look for a typing mistake in the name; it is declared in [assets]", LIKELY),
    ("no-network", r"Temporary failure in name resolution|Could not resolve host|Network is unreachable",
     "something is fetched where there is no network",
     "declare it in [assets] or [environment]: hpctrain fetches it where the network is", LIKELY),
    ("zero-ranks", r"checkpoint being loaded used a DP world size of \d+ but the current world size is \d+",
     "DeepSpeed's ZeRO goes on on as many ranks as saved the checkpoint, and no others",
     ("hpctrain convert CHECKPOINT --ranks N -o NEW with the number of ranks now, then a new run with "
     '[checkpoint] resume = "NEW"; or as many GPUs as before'), CERTAIN),
    ("port-taken", r"EADDRINUSE|[Aa]ddress already in use",
     "another process listens on the port", "start again: the port of a job follows from its number", LIKELY),
    ("wrong-python", (r"requires a different Python|requires Python [<>=!~]|was compiled for Python \d"
     r"|ImportError: bad magic number|undefined symbol: _?Py[A-Z]\w+"),
     "the program or a package needs another version of Python",
     'python = "3.12" in [environment], or a version of the package for this Python', LIKELY),
    ("library-missing", r"error while loading shared libraries|cannot open shared object file",
     "a shared library is not on this node",
     "load the module that has it ([environment] modules), or install it in the environment", LIKELY),
    ("old-system", r"version `(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found",
     "a program was built for a newer system than this node's",
     "take a build for this system, or compile it: [environment] compile", CERTAIN),
    ("gpu-absent", (r"No CUDA GPUs are available|no CUDA-capable device is detected|hipErrorNoDevice"
     r"|CUDA driver version is insufficient"),
     "the process sees no GPU, or one that its CUDA is too new for",
     "[resources] gpus, and torch for this machine's driver: hpctrain clusters NAME", LIKELY),
    ("gpu-broken", r"uncorrectable ECC error|GPU has fallen off the bus",
     "a GPU of the node is broken", "tell the site, and leave the node out; then hpctrain continue", CERTAIN),
    ("gpu-assert", r"device-side assert triggered",
     "a GPU kernel refused its input: most often a token or label outside the vocabulary",
     'CUDA_LAUNCH_BLOCKING = "1" in [env] names the line', LIKELY),
    ("open-files", r"Too many open files", "the limit on open files is reached",
     "fewer data workers, or ulimit -n 65536 before the program", CERTAIN),
    ("time-limit", r"DUE TO TIME LIMIT", "the job reached its time limit",
     "hpctrain continue goes on from the newest checkpoint; [resources] time for more", CERTAIN),
    ("node-failure", r"DUE TO NODE FAILURE", "a node of the job failed", "hpctrain continue", CERTAIN),
    ("segfault", r"Segmentation fault|[Cc]aught signal 11|\"code\": ?139\b",
     "a library crashed (signal 11, SIGSEGV)",
     'PYTHONFAULTHANDLER = "1" in [env] names the call; libraries of different builds are the usual cause',
     LIKELY),
    ("killed", r'"code": ?137\b|^.*\bKilled\s*$',
     "the process was killed (signal 9, SIGKILL): most often by the system when the node's memory was full",
     "fewer data workers or a smaller batch, if nobody ended it on purpose; then hpctrain continue", GUESS),
    ("aborted", r'"code": ?134\b', "a library gave up (signal 6, SIGABRT)",
     "its reason stands in the log, above the end", GUESS),
    ("bus-error", r'"code": ?135\b|^.*Bus error',
     "memory that a file or /dev/shm backs has no room (signal 7, SIGBUS)",
     "fewer data workers, or room in /dev/shm and on the node's disk", GUESS),
    ("illegal-instruction", r'"code": ?132\b|^.*Illegal instruction',
     "a program was built for another kind of processor (signal 4, SIGILL)",
     "build it on this machine: [environment] compile", GUESS),
    ("terminated", r'"code": ?143\b',
     "the process was ended (signal 15, SIGTERM): a time limit, a cancel or a preemption",
     "hpctrain continue", GUESS),
    ("command-missing", r'"code": ?127\b', "a program that the step starts does not exist there",
     "its name stands in the log; [environment] modules or packages bring it", GUESS),
)  # fmt: skip

RULES = tuple(
    Rule(name=name, pattern=pattern, cause=cause, fix=fix, sure=sure, source="core")
    for name, pattern, cause, fix, sure in _TABLE
)
