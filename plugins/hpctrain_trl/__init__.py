"""The trainer that runs in the job: transformers, TRL and PEFT behind one command."""
