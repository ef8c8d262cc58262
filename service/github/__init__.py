"""The GitHub gate: webhooks in, evaluations queued, one check run a commit out. Off where no App is set up."""
