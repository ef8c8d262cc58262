"""What got slower on the mainline: found, kept as one object a cause, followed until it is fixed."""
