"""How an environment is built and entered; what the run file's `use` names is a module or a folder here.

venv, uv, conda  a folder of wheels
wheels/          what these share: what is asked, locked, built, packed and proved
apptainer/ edf/  on top of an image
image/           what these share: names, registries, what an image has
ready            what you have already
prefix           how a command gets into any folder with a `bin`
"""
