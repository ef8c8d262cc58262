"""Run as children, each with a time limit: what they import or ask may hang, crash, or leave a driver context."""
