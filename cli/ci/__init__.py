"""`kernelgate ci`: the gate inside a CI job."""
