"""What NVIDIA's tools say of a revision's calls: compute-sanitizer's findings, Nsight Compute's counters."""
