#!/bin/bash
# Print the id of the job of this machine with a tag, where there is one.
# usage: find.sh TAG
[[ ! -e $HPC_STATE/${1:0:12}.job ]] || echo "${1:0:12}"
