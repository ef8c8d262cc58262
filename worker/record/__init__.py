"""The untrusted side: what does one call of a submission launch? Its host code runs here and nowhere else."""
