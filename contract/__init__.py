"""What the parts say to each other and what authors write. Pydantic models and pure functions, no I/O."""
