"""What `kernelgate up` and `demo` run on this machine: home folder, processes, first token."""
