"""Checkpoints from any format to any other, without torch and without trust.

`convert.convert` is the one function; each format is a module with `detect`, `read` and `plan`.
Readers say where every tensor's bytes lie, writers say where they go, one engine copies them.

    formats/     what each format's names, shards and settings mean
    containers/  the files that they keep tensors in
    copying/     reading, computing, checking, writing, publishing; knows no format
    cli/         `hpctrain convert`, here or as a job
    export/      the same as a step of a plan
    logits/      what a checkpoint computes, for `--verify logits`
    hub/         `hpctrain publish`

Beside them lies what all of these speak of: tensors and the bands of bytes that they are made of, layouts,
options, the record that is written (`record.py`), and which formats there are.
"""
