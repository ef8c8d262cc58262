"""`kernelgate demo`: the whole path on this machine, with the kernels that ship."""
