"""Files that hold tensors: safetensors, and the zip of torch with a pickle that nothing executes."""
